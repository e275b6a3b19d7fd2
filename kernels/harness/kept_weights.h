// Weights that many cases share: those of one grid differ in tokens, activations and the inputs' numbers, and a weight
// in blocks takes longer to make than to multiply.
#pragma once

#include <string_view>

#include "kernels/harness/made_weight.h"

namespace assay {

// MadeWeight(weight_form(form), kind, options), made once for whoever asks for the same; a process keeps no more than
// 64 MiB of them. May be called by any thread. Throws Error::usage for a form there is not.
MadeWeightPtr kept_weight(std::string_view form, InputKind kind, const FillOptions& options);

}  // namespace assay
