// A running maximum that a NaN cannot leave.
#pragma once

#include <cmath>

namespace assay {

// The larger of two, NaN where either is. std::max(largest, x) loses a NaN that comes, and a running
// `if (!(x <= largest)) largest = x` one that is there already.
inline double larger_or_nan(double a, double b) {
  if (std::isnan(a)) return a;
  return b <= a ? a : b;
}

}  // namespace assay
