// What a precision asks for and a checkpoint cannot give.
#pragma once

#include <string>

#include "refimpl/models/weights.h"
#include "refimpl/ops/arithmetic.h"

namespace assay {

// "no weight is stored in FP8 with scales: everything is computed as under bf16"; empty: nothing to say.
std::string precision_note(const Weights& weights, Precision precision);

}  // namespace assay
