// Activations in 8 bits, a scale for each block of them: s = amax / limit, q = round(x / s), x ≈ q · s, in
// float32. A block is 1 × 128 (DeepSeek-V3, inference/kernel.py), a row (per token), a column (per channel),
// or all there is (per tensor). limit: 448 of E4M3, 57344 of E5M2, 127 of I8. FP8 takes amax for at least
// 1e-4, as DeepSeek's kernel does. A block with a NaN or an infinity has no finite scale, and comes back NaN.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/model/stored_form.h"
#include "core/numeric/block_quantizer.h"
#include "core/numeric/codec.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

constexpr float kLeastFp8Amax = 1e-4F;

struct BlockGrid {
  std::size_t rows, columns;        // of one block
  std::size_t blocks_down, blocks;  // of all; blocks: in a row of them
  std::size_t of(std::size_t r, std::size_t c) const { return r / rows * blocks + c / columns; }
};

BlockGrid grid(const QuantizeRule& rule, std::size_t rows, std::size_t columns) {
  const std::size_t height = rule.block_rows == 0 ? std::max<std::size_t>(1, rows) : rule.block_rows;
  const std::size_t width = rule.block_columns == 0 ? std::max<std::size_t>(1, columns) : rule.block_columns;
  return {height, width, (rows + height - 1) / height, (columns + width - 1) / width};
}

float scale_for(float amax, const QuantizeRule& rule) {
  if (!std::isfinite(amax)) return std::numeric_limits<float>::quiet_NaN();
  BlockQuantizer quantizer;
  quantizer.codes = rule.codes;
  quantizer.limit = largest_code_value(rule.codes);
  quantizer.rounding = rule.power_of_two ? ScaleRounding::power_of_two : ScaleRounding::none;
  return quantizer.scale_for(rule.codes == ElementType::I8 ? amax : std::max(amax, kLeastFp8Amax));
}

}  // namespace

QuantizedMatrix ReferenceOps::quantize(const Matrix& x, const QuantizeRule& rule) {
  const BlockGrid g = grid(rule, x.rows(), x.columns());
  QuantizedMatrix q{rule, x.rows(), x.columns(), {}, std::vector<float>(g.blocks_down * g.blocks)};
  q.codes.resize(x.rows() * x.columns());
  const std::vector<double> wide = download(x);
  const std::vector<float> values(wide.begin(), wide.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    float& amax = q.scales[g.of(i / x.columns(), i % x.columns())];
    const float magnitude = std::abs(values[i]);
    if (!(magnitude <= amax)) amax = std::isnan(amax) ? amax : magnitude;  // a NaN stays
  }
  for (float& scale : q.scales) scale = scale_for(scale, rule);
  std::vector<float> quotients(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    quotients[i] = values[i] / q.scales[g.of(i / x.columns(), i % x.columns())];
  encode(rule.codes, quotients, Overflow::saturate, q.codes.data());
  return q;
}

Matrix ReferenceOps::dequantize(const QuantizedMatrix& x) {
  const BlockGrid g = grid(x.rule, x.rows, x.columns);
  std::vector<float> values(x.rows * x.columns);
  decode(x.rule.codes, x.codes, values.data());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= x.scales[g.of(i / x.columns, i % x.columns)];
  return upload(std::vector<double>(values.begin(), values.end()), x.rows, x.columns);
}

}  // namespace assay
