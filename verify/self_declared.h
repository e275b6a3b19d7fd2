// What a safetensors file says of its own tensors: ModelSpec's `modelspec.hash_sha256` ("0x" and 64 digits), and
// `sshs_model_hash`, as training scripts for sd-webui write it. Whoever changes the tensors can change it too: it finds
// accidents, and proves nothing.
#pragma once

#include <string>

#include "core/formats/safetensors.h"
#include "core/system/finding.h"
#include "verify/claims/claim.h"

namespace assay {

// A hash that is none is a warning among `findings`, under that file's name.
FileClaims self_declared(const safetensors::Header& header, const std::string& file, Findings& findings);

}  // namespace assay
