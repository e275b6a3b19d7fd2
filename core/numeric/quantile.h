// Quantiles as NumPy's default method ("linear": Hyndman and Fan's seventh) has them, to the bit.
#pragma once

#include <span>

namespace assay {

// The number below which a share (0 to 1) of the others lies, between two neighbours in proportion. `sorted` is ascending
// and not empty.
double linear_quantile(std::span<const double> sorted, double share);

}  // namespace assay
