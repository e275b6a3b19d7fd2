#include "core/numeric/quantile.h"

#include <algorithm>
#include <cmath>

namespace assay {

double linear_quantile(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const double below = std::floor(place);
  const auto index = static_cast<std::size_t>(below);
  const double a = sorted[index], b = sorted[std::min(index + 1, sorted.size() - 1)];
  const double step = b - a, part = place - below;
  // From the nearer end, so that it never leaves [a, b] (numpy/lib/_function_base_impl.py, _lerp).
  return part >= 0.5 ? b - step * (1 - part) : a + step * part;
}

}  // namespace assay
