#include "refimpl/ops/w8a8.h"

#include <algorithm>

#include "core/numeric/codec.h"
#include "core/system/threads.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

constexpr std::size_t kPromotion = 128;  // products summed before a scale is applied, at most

bool is_fp8(ElementType type) {
  return type == ElementType::F8_E4M3 || type == ElementType::F8_E5M2;
}

struct Row {
  const float* x;         // values of the activations' codes
  const float* x_scales;  // one for x_block of them
  std::size_t x_block;
  const float* w;
  const float* w_scales;
  std::size_t w_block;
  std::size_t inputs;
};

// Partial sums end where either operand's scale changes.
float fp8_product(const Row& row) {
  float sum = 0;
  for (std::size_t begin = 0; begin < row.inputs;) {
    const std::size_t x_end = (begin / row.x_block + 1) * row.x_block;
    const std::size_t w_end = (begin / row.w_block + 1) * row.w_block;
    const std::size_t end = std::min({x_end, w_end, row.inputs});
    float partial = 0;
    for (std::size_t i = begin; i < end; ++i) partial += row.x[i] * row.w[i];
    sum += partial * row.x_scales[begin / row.x_block] * row.w_scales[begin / row.w_block];
    begin = end;
  }
  return sum;
}

// Codes are integers up to 2^7, so that double holds any sum of their products exactly.
float int8_product(const Row& row) {
  const double sum = dot(row.x, row.w, row.inputs);
  return static_cast<float>(sum) * row.x_scales[0] * row.w_scales[0];
}

}  // namespace

bool is_w8a8(const WeightView& weight, const Arithmetic& arithmetic) {
  if (weight.kind != FormKind::scaled || weight.codes == nullptr || weight.input_major || weight.weight_only)
    return false;
  if (arithmetic.precision == Precision::fp8_block) return is_fp8(weight.type);
  return arithmetic.precision == Precision::int8 && weight.type == ElementType::I8 &&
         weight.scale_columns == 1;
}

Matrix w8a8_linear(Ops& ops, const Matrix& x, const WeightView& weight, const WeightView& bias) {
  const bool fp8 = is_fp8(weight.type);
  const QuantizedMatrix q =
      ops.quantize(x, {.codes = weight.type, .block_rows = 1, .block_columns = fp8 ? kPromotion : 0});
  const std::size_t inputs = weight.inputs(), outputs = weight.outputs();
  std::vector<float> codes(x.rows() * inputs);
  decode(q.rule.codes, q.codes, codes.data());
  const std::size_t scales_a_row = fp8 ? (inputs + kPromotion - 1) / kPromotion : 1;

  Matrix y = ops.allocate(x.rows(), outputs);  // [tokens, outputs]
  const std::vector<double> b = vector_of(bias, ops.arithmetic());
  parallel_for(ops.jobs(), outputs, [&](std::size_t o) {
    std::vector<float> w(inputs), w_scales(weight.scale_columns);
    decode_codes(weight, o, 1, w.data());
    decode_scales(weight, o, w_scales.data());
    for (std::size_t t = 0; t < x.rows(); ++t) {
      const Row row = {&codes[t * inputs],
                       &q.scales[t * scales_a_row],
                       fp8 ? kPromotion : inputs,
                       w.data(),
                       w_scales.data(),
                       weight.block_columns,
                       inputs};
      double sum = ops.arithmetic().round(fp8 ? fp8_product(row) : int8_product(row));
      if (!b.empty()) sum = ops.arithmetic().round(sum + b[o]);
      y.row<float>(t)[o] = static_cast<float>(sum);
    }
  });
  return y;
}

}  // namespace assay
