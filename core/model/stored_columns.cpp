#include "core/model/stored_columns.h"

#include <algorithm>
#include <vector>

#include "core/numeric/block_quantizer.h"
#include "core/numeric/codec_simd.h"

namespace assay {
namespace {

constexpr std::uint64_t kRowsAtOnce = 64;

bool is_one_code_an_element(const LogicalTensor& tensor) {
  const bool scaled = tensor.form.kind == FormKind::scaled && !tensor.form.transposed;
  return (tensor.form.kind == FormKind::plain || scaled) && info(tensor.form.codes).block_elements == 1 &&
         info(tensor.form.codes).in_safetensors && !tensor.input_factors && !tensor.composed;
}

class Columns {
 public:
  Columns(const CheckpointReader& source, const LogicalTensor& tensor)
      : source_(source), tensor_(tensor), reader_(source, tensor) {}

  // A stored row of gpt-oss's is a column of the values.
  void decode_lying_fp4(const ColumnStrip& strip, std::span<float> out) const {
    constexpr std::uint64_t kBlock = 32;
    const std::uint64_t inputs = tensor_.rows, blocks = inputs / kBlock;
    const std::uint64_t first = strip.first_row / inputs * tensor_.columns + strip.first_column;
    std::vector<std::byte> stored(strip.columns * inputs / 2), stored_scales(strip.columns * blocks);
    std::vector<float> scales(stored_scales.size());
    source_.read(stored_tensor(tensor_.codes), first * inputs / 2, stored);
    source_.read(stored_tensor(*tensor_.scale), first * blocks, stored_scales);
    simd::decode(ElementType::F8_E8M0, stored_scales, scales.data());
    simd::decode(ElementType::F4, stored, out.data());
    scale_row(out.first(strip.columns * inputs), kBlock, scales.data());
  }

  // The strip's part of some rows, row by row as they lie.
  void decode_strip(const ColumnStrip& strip, std::uint64_t first_row, std::uint64_t rows,
                    std::span<float> out) const {
    const std::uint64_t width = strip.columns, columns = tensor_.columns;
    if (!is_one_code_an_element(tensor_)) {
      std::vector<float> whole(rows * columns);
      reader_.decode_rows(first_row, rows, whole);
      for (std::uint64_t r = 0; r < rows; ++r)
        std::copy_n(&whole[r * columns + strip.first_column], width, &out[r * width]);
      return;
    }
    const std::uint64_t bytes = info(tensor_.form.codes).block_bytes;
    std::vector<std::byte> stored(rows * width * bytes);
    source_.read_rectangle(stored_tensor(tensor_.codes), columns * bytes, first_row, rows,
                           strip.first_column * bytes, stored);
    simd::decode(tensor_.form.codes, stored, out.data());
    if (tensor_.form.kind == FormKind::scaled) multiply(strip, first_row, rows, out);
  }

 private:
  const CheckpointTensor& stored_tensor(std::uint32_t place) const {
    return source_.checkpoint().tensors[place];
  }

  void multiply(const ColumnStrip& strip, std::uint64_t first_row, std::uint64_t rows,
                std::span<float> out) const {
    std::vector<float> scales(tensor_.scale_columns());
    std::uint64_t here = UINT64_MAX;
    for (std::uint64_t r = 0; r < rows; ++r) {
      const std::uint64_t row = first_row + r;
      const std::uint64_t block_row =
          row / tensor_.rows * tensor_.scale_rows() + row % tensor_.rows / tensor_.form.block_rows;
      if (block_row != here) reader_.decode_scales(here = block_row, 1, scales);
      for (std::uint64_t c = 0; c < strip.columns; ++c)
        out[r * strip.columns + c] *= scales[(strip.first_column + c) / tensor_.form.block_columns];
    }
  }

  const CheckpointReader& source_;
  const LogicalTensor& tensor_;
  StoredReader reader_;
};

}  // namespace

void decode_columns(const CheckpointReader& source, const LogicalTensor& tensor, const ColumnStrip& strip,
                    std::span<float> out) {
  if (strip.rows == 0 || strip.columns == 0) return;
  const Columns columns(source, tensor);
  const bool lies_so = tensor.form.kind == FormKind::fp4 && tensor.form.transposed && !tensor.composed &&
                       strip.rows == tensor.rows && strip.first_row % tensor.rows == 0;
  if (lies_so) return columns.decode_lying_fp4(strip, out);
  std::vector<float> some(kRowsAtOnce * strip.columns);
  for (std::uint64_t top = 0; top < strip.rows; top += kRowsAtOnce) {
    const std::uint64_t rows = std::min(kRowsAtOnce, strip.rows - top);
    columns.decode_strip(strip, strip.first_row + top, rows, std::span(some).first(rows * strip.columns));
    for (std::uint64_t c = 0; c < strip.columns; ++c) {
      for (std::uint64_t r = 0; r < rows; ++r) out[c * strip.rows + top + r] = some[r * strip.columns + c];
    }
  }
}

}  // namespace assay
