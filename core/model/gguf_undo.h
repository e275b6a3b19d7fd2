// From a GGUF's tensors back to a checkpoint's: each way of putting tensors together (gguf_export.h) is a plan
// (DerivedTensor), and a plan can be turned round. So what writes a family reads it too, and no transform is described
// twice: rows go back where they came from, columns likewise, what was stored less 1 or as an exponential becomes what
// it was. What cannot be turned round (a product of two tensors) is an error that names the tensor.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/model/derived_tensor.h"
#include "core/model/gguf_export.h"

namespace assay {

// `written`: what would be made of the checkpoint `imagined`, of which there are names and shapes alone. The result are
// the tensors of `imagined`, of those of `gguf`; what none of them uses is appended to `left_out`. Throws Error::input
// for a tensor that is missing or of another shape.
std::vector<DerivedTensor> undo(const std::vector<GgufTensor>& written, const StoredTensors& imagined,
                                const StoredTensors& gguf, const std::filesystem::path& source,
                                std::vector<std::string>& left_out);

}  // namespace assay
