#include "kernels/operands/int8_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

namespace {
void round_by_groups(std::span<float> row, std::size_t size) {
  for (std::size_t first = 0; first < row.size(); first += size) {
    const std::span group = row.subspan(first, std::min(size, row.size() - first));
    const float scale = int8_block_scale(group);
    for (float& x : group) x = static_cast<float>(int8_block_code(x, scale)) * scale;
  }
}
}  // namespace

void round_to_int8_block(std::span<float> row) {
  round_by_groups(row, kInt8Group);
}
void round_to_int8_super_block(std::span<float> row) {
  round_by_groups(row, kInt8SuperGroup);
}

}  // namespace assay
