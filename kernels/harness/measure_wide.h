// measure() of outputs that a float does not hold: F64.
#pragma once

#include "kernels/harness/measure.h"

namespace assay {

ErrorMeasure measure(std::span<const double> out, std::span<const double> truth,
                     std::span<const double> budget, ElementType type);

}  // namespace assay
