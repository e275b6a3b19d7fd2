// Activations to 8 bits and back: s = max|x| / limit over a block, q = round(x / s), x ≈ q · s.
//
// Blocks of 1 × 128 are DeepSeek's (inference/kernel.py, act_quant), whose largest magnitude is never taken
// below 1e-4; whole rows are "per token", whole columns of blocks "per channel", everything "per tensor".
#include <algorithm>

#include "core/numeric/block_quantizer.h"
#include "core/numeric/codec.h"
#include "refimpl/ops/activation_quantizer.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

std::size_t block_or_all(std::size_t block, std::size_t size) {
  return block == 0 ? std::max<std::size_t>(1, size) : block;
}

}  // namespace

BlockQuantizer quantizer_of(const QuantizeRule& rule, std::size_t block_rows, std::size_t block_columns) {
  return {.codes = rule.codes,
          .block_rows = block_rows,
          .block_columns = block_columns,
          .limit = largest_code_value(rule.codes),
          .rounding = rule.power_of_two ? ScaleRounding::power_of_two : ScaleRounding::none};
}

float activation_scale(const BlockQuantizer& quantizer, float amax) {
  constexpr float kLeastMagnitude = 1e-4F;  // of an FP8 block
  return quantizer.scale_for(quantizer.codes == ElementType::I8 ? amax : std::max(amax, kLeastMagnitude));
}

QuantizedMatrix ReferenceOps::run(const QuantizeCall& call) {
  const Matrix& x = call.x;
  const QuantizeRule& rule = call.rule;
  const std::size_t block_rows = block_or_all(rule.block_rows, x.rows());
  const std::size_t block_columns = block_or_all(rule.block_columns, x.columns());
  const auto blocks = [](std::size_t size, std::size_t block) { return (size + block - 1) / block; };
  QuantizedMatrix q = {rule, x.rows(), x.columns(), {}, {}};
  q.codes.resize(x.rows() * x.columns());
  q.scales.resize(blocks(x.rows(), block_rows) * blocks(x.columns(), block_columns));

  const std::vector<double> wide = download(x);
  const std::vector<float> values(wide.begin(), wide.end());
  if (!block_amax(values, x.rows(), x.columns(), block_rows, block_columns, q.scales))
    throw Error::input("activations became NaN or infinite: 8 bits cannot hold them")
        .remedy("look where with --dump, in f32");
  const BlockQuantizer quantizer = quantizer_of(rule, block_rows, block_columns);
  for (float& scale : q.scales) scale = activation_scale(quantizer, scale);
  quantize_with_scales(quantizer, values, x.rows(), x.columns(), q.scales, q.codes);
  return q;
}

Matrix ReferenceOps::run(const DequantizeCall& call) {
  const QuantizedMatrix& q = call.x;
  const std::size_t block_rows = block_or_all(q.rule.block_rows, q.rows);
  const std::size_t block_columns = block_or_all(q.rule.block_columns, q.columns);
  const std::size_t scales_a_row = (q.columns + block_columns - 1) / block_columns;
  std::vector<float> values(q.rows * q.columns);
  decode(q.rule.codes, q.codes, values.data());
  for (std::size_t r = 0; r < q.rows; ++r)
    scale_row(std::span(&values[r * q.columns], q.columns), block_columns,
              &q.scales[r / block_rows * scales_a_row]);
  return upload(std::vector<double>(values.begin(), values.end()), q.rows, q.columns);
}

}  // namespace assay
