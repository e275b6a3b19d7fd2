#include "refimpl/ops/int8_block_activations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "refimpl/ops/int16_activations.h"

namespace assay {

bool takes_int8_block(const WeightView& weight, const Arithmetic& arithmetic) {
  return arithmetic.precision == Precision::int8_block && has_integer_rows(weight);
}

float int8_block_scale(std::span<const float> group) {
  float largest = 0;
  for (const float x : group) {
    if (!std::isfinite(x)) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::fabs(x));
  }
  return std::max(largest / 127, std::numeric_limits<float>::min());
}

std::int8_t int8_block_code(float x, float scale) {
  if (!(scale > 0)) return 0;
  return static_cast<std::int8_t>(std::clamp(std::nearbyint(x * (1 / scale)), -127.0F, 127.0F));
}

Matrix rounded_to_int8_block(Ops& ops, const Matrix& x) {
  Matrix y = ops.allocate(x.rows(), x.columns());
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t c = 0; c < x.columns(); c += kInt8Group) {
      const std::size_t count = std::min(kInt8Group, x.columns() - c);
      const std::span group(x.row<float>(r) + c, count);
      const float scale = int8_block_scale(group);
      for (std::size_t i = 0; i < count; ++i)
        y.row<float>(r)[c + i] = static_cast<float>(int8_block_code(group[i], scale)) * scale;
    }
  }
  return y;
}

}  // namespace assay
