// Are these the tensors that the config.json beside them describes? Headers only.
#pragma once

#include "core/system/file.h"
#include "core/system/finding.h"
#include "verify/structure.h"

namespace assay {

// Holds the safetensors of each folder that has a config.json against its module tree: tensors missing, extra
// or misshapen, scale grids of the wrong size, a stale quantization_config. All of it is warnings here: the
// bytes may well be what was published, and the publisher wrong. A config that says nothing we understand
// gives one note. The tensors in `structure` are handed over to the comparison and given back.
Findings check_identity(Structure& structure, const fs::path& root);

}  // namespace assay
