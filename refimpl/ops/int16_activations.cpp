#include "refimpl/ops/int16_activations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace assay {

bool has_integer_rows(const WeightView& weight) {
  if (weight.codes == nullptr || weight.kind != FormKind::plain || weight.input_major) return false;
  switch (weight.type) {
    case ElementType::Q4_0:
    case ElementType::Q4_1:
    case ElementType::Q5_0:
    case ElementType::Q5_1:
    case ElementType::Q8_0:
    case ElementType::Q4_K:
    case ElementType::Q5_K:
    case ElementType::Q6_K: return true;
    default: return false;
  }
}

bool takes_int16(const WeightView& weight, const Arithmetic& arithmetic) {
  return arithmetic.precision == Precision::int16 && !weight.weight_only && has_integer_rows(weight);
}

float int16_scale(std::span<const float> group) {
  std::uint32_t largest = 0;  // of bits without their sign: ordered as the magnitudes are, NaN above all
  for (const float x : group) largest = std::max(largest, std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFu);
  const std::uint32_t exponent = largest >> 23;
  if (exponent == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, static_cast<int>(std::max(exponent, 15u)) - 127 - 14);
}

std::int16_t int16_code(float x, float scale) {
  if (!(scale > 0)) return 0;
  return static_cast<std::int16_t>(std::clamp(std::nearbyint(x / scale), -32767.0F, 32767.0F));
}

Matrix rounded_to_int16(Ops& ops, const Matrix& x) {
  Matrix y = ops.allocate(x.rows(), x.columns());
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t c = 0; c < x.columns(); c += kInt16Group) {
      const std::size_t count = std::min(kInt16Group, x.columns() - c);
      const std::span group(x.row<float>(r) + c, count);
      const float scale = int16_scale(group);
      for (std::size_t i = 0; i < count; ++i)
        y.row<float>(r)[c + i] = static_cast<float>(int16_code(group[i], scale)) * scale;
    }
  }
  return y;
}

}  // namespace assay
