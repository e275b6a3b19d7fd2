#include "kernels/cpu/linear_input.h"

#include <algorithm>

#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/row_dot_int8.h"
#include "kernels/cpu/team.h"
#include "kernels/cpu/tile_rows.h"
#include "kernels/operands/int16.h"
#include "kernels/operands/int8_block.h"

namespace assay::cpu {
namespace {

std::vector<float> packed_tokens(const Matrix& x, int jobs) {
  std::vector<float> packed(x.rows() * x.columns());
  constexpr std::size_t kTokens = 2 * kMostTileRows;  // a multiple of every tile's
  team_for(jobs, (x.rows() + kTokens - 1) / kTokens, [&](std::size_t i) {
    const std::size_t first = i * kTokens, count = std::min(kTokens, x.rows() - first);
    pack_tokens(x.row<float>(first), x.stride(), count, x.columns(), packed.data() + first * x.columns());
  });
  return packed;
}

}  // namespace

LinearInput::Form::Form(LinearWay way, const WeightView& weight)
    : way(way), kind(weight.kind), type(weight.type) {
  if (way == LinearWay::gemv_int8 && is_super_block(type)) type = ElementType::Q4_K;
}

LinearInput::LinearInput(LinearWay way, const Matrix& x, const WeightView& weight, int jobs)
    : form_(way, weight) {
  switch (way) {
    case LinearWay::gemm: packed = packed_tokens(x, jobs); return;
    case LinearWay::gemm_int16: tiles.emplace(x, weight.type, int16_input_bits(weight), jobs); return;
    case LinearWay::gemm_int8: tiles.emplace(x, weight.type, kInt8BlockBits, jobs); return;
    case LinearWay::gemm_bf16: pairs.emplace(x, jobs); return;
    default: read_tokens(x, weight, jobs);
  }
}

void LinearInput::read_tokens(const Matrix& x, const WeightView& weight, int jobs) {
  const LinearWay way = form_.way;
  if (way == LinearWay::gemv_bf16 && multiplies_pairs()) return static_cast<void>(bf16.emplace(x));
  const bool by_bytes = way == LinearWay::gemv_int8;
  const bool by_floats =
      !by_bytes && (way == LinearWay::gemv || way == LinearWay::gemv_bf16 || !has_integer_rows(weight));
  if (by_bytes) bytes.resize(x.rows());
  if (by_floats) floats.resize(x.rows());
  if (!by_bytes && !by_floats) ints.resize(x.rows());
  team_for(jobs, x.rows(), [&](std::size_t t) {
    const std::span<const float> row(x.row<float>(t), x.columns());
    if (by_bytes)
      bytes[t] = int8_input(row, weight.type);
    else if (by_floats)
      floats[t] = DotInput(row, weight, way == LinearWay::gemv_int16);
    else
      ints[t] = IntInput(row, way == LinearWay::gemv_int24);
  });
}

}  // namespace assay::cpu
