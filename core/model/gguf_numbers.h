// Of GGUF metadata, what a forward pass needs beside sizes: ε, θ, rotary scaling, caps, how experts are
// weighed; under the names config.json uses.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/formats/gguf.h"
#include "core/model/config.h"

namespace assay {

void add_forward_numbers(ParsedJson& config, const gguf::Header& header, const std::string& architecture);

}  // namespace assay
