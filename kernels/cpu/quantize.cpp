#include "kernels/cpu/quantize.h"

#include <algorithm>

#include "core/numeric/codec_simd.h"
#include "core/system/error.h"
#include "kernels/cpu/team.h"
#include "refimpl/ops/activation_quantizer.h"

namespace assay::cpu {
namespace {

void over_pieces(std::size_t rows, int jobs, const std::function<void(std::size_t row)>& body) {
  team_for(jobs, (rows + kQuantizePiece - 1) / kQuantizePiece, [&](std::size_t piece) {
    for (std::size_t r = piece * kQuantizePiece; r < std::min(rows, (piece + 1) * kQuantizePiece); ++r)
      body(r);
  });
}

std::size_t block_of(const QuantizeRule& rule, std::size_t columns) {
  return rule.block_columns == 0 ? std::max<std::size_t>(1, columns) : rule.block_columns;
}

}  // namespace

QuantizedMatrix quantize_rows(const Matrix& x, const QuantizeRule& rule, int jobs) {
  const std::size_t columns = x.columns(), block = block_of(rule, columns),
                    blocks = (columns + block - 1) / block;
  QuantizedMatrix q = {rule, x.rows(), columns, {}, {}};
  q.codes.resize(x.rows() * columns);
  q.scales.resize(x.rows() * blocks);
  const BlockQuantizer quantizer = quantizer_of(rule, 1, block);
  over_pieces(x.rows(), jobs, [&](std::size_t r) {
    const std::span<const float> row(x.row<float>(r), columns);
    const std::span scales = std::span(q.scales).subspan(r * blocks, blocks);
    if (!block_amax(row, 1, columns, 1, block, scales))
      throw Error::input("activations became NaN or infinite: 8 bits cannot hold them")
          .remedy("look where with --dump, in f32");
    for (float& scale : scales) scale = activation_scale(quantizer, scale);
    quantize_with_scales(quantizer, row, 1, columns, scales,
                         std::span(q.codes).subspan(r * columns, columns));
  });
  return q;
}

void dequantize_rows(const QuantizedMatrix& q, const Matrix& y, int jobs) {
  const std::size_t block = block_of(q.rule, q.columns), blocks = (q.columns + block - 1) / block;
  const std::size_t block_rows =
      q.rule.block_rows == 0 ? std::max<std::size_t>(1, q.rows) : q.rule.block_rows;
  over_pieces(q.rows, jobs, [&](std::size_t r) {
    float* row = y.row<float>(r);
    simd::decode(q.rule.codes, std::span(q.codes).subspan(r * q.columns, q.columns), row);
    scale_row(std::span(row, q.columns), block, &q.scales[r / block_rows * blocks]);
  });
}

}  // namespace assay::cpu
