#include "kernels/operands/int16.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace assay {

bool has_int16_floats(const WeightView& weight) {
  return weight.codes != nullptr && weight.kind == FormKind::plain && !weight.input_major &&
         (weight.type == ElementType::BF16 || weight.type == ElementType::F16) &&
         weight.columns % kInt16Group == 0;
}

bool takes_int16(const WeightView& weight, const Arithmetic& arithmetic) {
  return arithmetic.precision == Precision::int16 && !weight.weight_only &&
         (has_integer_rows(weight) || has_int16_floats(weight));
}

int int16_input_bits(const WeightView& weight) {
  return has_int16_floats(weight) ? 14 : 15;
}

float int16_scale(std::span<const float> group, int bits) {
  std::uint32_t largest = 0;  // of bits without their sign: ordered as the magnitudes are, NaN above all
  for (const float x : group) largest = std::max(largest, std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFu);
  const int exponent = static_cast<int>(largest >> 23);
  if (exponent == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, std::max(exponent, bits) - 127 - bits + 1);
}

std::int16_t int16_code(float x, float scale, int bits) {
  if (!(scale > 0)) return 0;
  const auto most = static_cast<float>((1 << bits) - 1);
  return static_cast<std::int16_t>(std::clamp(std::nearbyint(x / scale), -most, most));
}

void round_to_int16(std::span<float> row, int bits) {
  for (std::size_t first = 0; first < row.size(); first += kInt16Group) {
    const std::span group = row.subspan(first, std::min(kInt16Group, row.size() - first));
    const float scale = int16_scale(group, bits);
    for (float& x : group) x = static_cast<float>(int16_code(x, scale, bits)) * scale;
  }
}

}  // namespace assay
