// `convert --equal` of a checkpoint and a GGUF that is not read back: what the converter would make of the one, tensor by
// tensor, against what the other holds.
#pragma once

#include <optional>

#include "convert/equal.h"
#include "core/system/progress.h"

namespace assay {

// nullopt: nobody has told how a checkpoint of the first's family becomes a file of the second's architecture.
std::optional<EqualReport> compare_exported(const Side& checkpoint, const Side& gguf, bool gguf_first,
                                            const EqualOptions& options, Progress& progress);

}  // namespace assay
