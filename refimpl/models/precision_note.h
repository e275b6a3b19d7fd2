// What a precision asks for, and a checkpoint or a selection of kernels cannot give.
#pragma once

#include <string>
#include <string_view>

#include "refimpl/models/weights.h"
#include "refimpl/ops/arithmetic.h"

namespace assay {

// "no weight is stored in FP8 with scales: everything is computed as under bf16"; empty: nothing to say.
// `kernels`: as --kernels names them.
std::string precision_note(const Weights& weights, Precision precision, std::string_view kernels);

}  // namespace assay
