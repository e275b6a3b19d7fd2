// `assay manifest PATH --tensors`: the SHA-256 of every tensor, as stored or as an engine holds it.
#pragma once

#include <string>

#include "core/model/held_option.h"

namespace assay {

// The document to `output`, or to stdout where that is empty; returns the exit code.
int run_tensor_manifest(const fs::path& path, const HeldSettings& held, const std::string& output,
                        const CommonOptions& common);

}  // namespace assay
