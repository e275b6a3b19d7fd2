// GGUF metadata that no size depends on: what a forward pass needs beyond the module tree.
#pragma once

#include <string>

#include "core/model/config.h"

namespace assay {

// Adds ε, caps, routing and rotary settings to `values` under the names config.json has for them.
void add_gguf_settings(ParsedJson& values, const gguf::Header& header, const std::string& architecture);

}  // namespace assay
