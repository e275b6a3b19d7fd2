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
    throw Error::input("has fewer rows than the model needs").tensor(*weight.name);
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

std::size_t scale_bytes(const WeightView& weight) {
  if (weight.scales == nullptr || weight.rows == 0) return 0;
  const std::size_t grid_rows = (weight.first_row + weight.rows - 1) / weight.block_rows + 1;
  return grid_rows * weight.scale_columns * info(weight.scale_type).block_bytes;
}

void decode_scales(const WeightView& weight, std::size_t row, float* out) {
  const std::size_t bytes = weight.scale_columns * info(weight.scale_type).block_bytes;
  const std::size_t grid_row = (weight.first_row + row) / weight.block_rows;
  simd::decode(weight.scale_type, std::span(weight.scales + grid_row * bytes, bytes), out);
  for (float& scale : std::span(out, weight.scale_columns)) {
    if (weight.global == GlobalScale::multiply) scale = scale * weight.global_scale;
    if (weight.global == GlobalScale::divide) scale = scale / weight.global_scale;
  }
}

void decode_codes(const WeightView& weight, std::size_t first, std::size_t count, float* out) {
  check_rows(weight, first, count);
  const std::span stored(weight.codes + first * weight.row_bytes, count * weight.row_bytes);
  if (info(weight.type).in_safetensors)
    simd::decode(weight.type, stored, out);
  else
    dequantize(weight.type, stored, out);
}

void decode_rows(const WeightView& weight, std::size_t first, std::size_t count, float* out) {
  if (weight.codes == nullptr) {
    check_rows(weight, first, count);
    return weight.reader->decode_rows(weight.reader_row + first, count,
                                      std::span(out, count * weight.columns));
  }
  decode_codes(weight, first, count, out);
  if (weight.kind == FormKind::plain) return;
  std::vector<float> scales(weight.scale_columns);
  for (std::size_t r = 0; r < count; ++r) {
    decode_scales(weight, first + r, scales.data());
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

std::vector<double> decode_vector(const WeightView& weight) {
  std::vector<double> values(weight.rows * weight.columns);
  decode_rows(weight, 0, weight.rows, values.data());
  return values;
}

bool is_integer_block(ElementType type) {
  switch (type) {
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

bool has_integer_rows(const WeightView& weight) {
  return weight.codes != nullptr && weight.kind == FormKind::plain && !weight.input_major &&
         is_integer_block(weight.type);
}

}  // namespace assay
