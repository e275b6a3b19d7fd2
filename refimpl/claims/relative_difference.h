// How far two runs' logits are apart, relative to the largest of the second; NaN where either has one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/numeric/largest.h"

namespace assay {

inline double relative_difference(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    scale = std::max(scale, std::abs(b[i]));
    difference = larger_or_nan(difference, std::abs(a[i] - b[i]));
  }
  return difference == 0 ? 0 : difference / scale;
}

}  // namespace assay
