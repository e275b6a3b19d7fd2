#include "refimpl/ops/weight_view.h"

#include <algorithm>
#include <vector>

#include "core/numeric/block_quantizer.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/gguf_blocks.h"
#include "core/system/error.h"

namespace assay {
namespace {

void check_rows(const WeightView& weight, std::size_t first, std::size_t count) {
  if (first > weight.rows || count > weight.rows - first)
    throw Error::internal("rows beyond the end of a weight").tensor(*weight.name);
}

void decode_scales(const WeightView& weight, std::size_t row, std::span<float> scales) {
  const std::size_t bytes = info(weight.scale_type).block_bytes;
  const std::size_t grid_row = (weight.first_row + row) / weight.block_rows;
  const std::byte* stored = weight.scales + grid_row * weight.scale_columns * bytes;
  simd::decode(weight.scale_type, std::span(stored, weight.scale_columns * bytes), scales.data());
  for (float& scale : scales) {
    if (weight.global == GlobalScale::multiply) scale = scale * weight.global_scale;
    if (weight.global == GlobalScale::divide) scale = scale / weight.global_scale;
  }
}

}  // namespace

WeightView WeightView::row_range(std::size_t first, std::size_t count) const {
  check_rows(*this, first, count);
  WeightView cut = *this;
  cut.rows = count;
  if (codes != nullptr) cut.codes += first * row_bytes;
  cut.first_row += first;
  cut.reader_row += first;
  return cut;
}

void decode_rows(const WeightView& weight, std::size_t first, std::size_t count, float* out) {
  check_rows(weight, first, count);
  if (weight.codes == nullptr)
    return weight.reader->decode_rows(weight.reader_row + first, count,
                                      std::span(out, count * weight.columns));
  const std::span stored(weight.codes + first * weight.row_bytes, count * weight.row_bytes);
  if (info(weight.type).in_safetensors)
    simd::decode(weight.type, stored, out);
  else
    dequantize(weight.type, stored, out);
  if (weight.kind == FormKind::plain) return;
  std::vector<float> scales(weight.scale_columns);
  for (std::size_t r = 0; r < count; ++r) {
    decode_scales(weight, first + r, scales);
    scale_row(std::span(out + r * weight.columns, weight.columns), weight.block_columns, scales.data());
  }
}

void decode_rows(const WeightView& weight, std::size_t first, std::size_t count, double* out) {
  check_rows(weight, first, count);
  if (weight.codes != nullptr && weight.type == ElementType::F64 && weight.kind == FormKind::plain) {
    decode(weight.type, std::span(weight.codes + first * weight.row_bytes, count * weight.row_bytes), out);
    return;
  }
  std::vector<float> narrow(count * weight.columns);
  decode_rows(weight, first, count, narrow.data());
  std::copy(narrow.begin(), narrow.end(), out);
}

}  // namespace assay
