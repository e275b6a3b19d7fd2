#include "core/model/zero_scales.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/system/threads.h"

namespace assay {
namespace {

// The bits of a byte of codes that are set in no zero: signs do not count.
std::byte nonzero_bits(const LogicalTensor& tensor) {
  if (tensor.form.kind == FormKind::fp4) return std::byte{0x77};
  return tensor.form.codes == ElementType::I8 ? std::byte{0xFF} : std::byte{0x7F};
}

bool holds_codes(const CheckpointReader& reader, const LogicalTensor& tensor, std::uint64_t first_row,
                 std::uint64_t rows, std::uint64_t column, std::uint64_t columns) {
  const std::uint64_t in_a_byte = tensor.form.kind == FormKind::fp4 ? 2 : 1;
  const CheckpointTensor& codes = reader.checkpoint().tensors[tensor.codes];
  const std::uint64_t row_bytes = tensor.columns / in_a_byte;
  std::vector<std::byte> bytes(columns / in_a_byte);
  const std::byte mask = nonzero_bits(tensor);
  for (std::uint64_t row = first_row; row < first_row + rows; ++row) {
    reader.read(codes, row * row_bytes + column / in_a_byte, bytes);
    if (std::any_of(bytes.begin(), bytes.end(), [&](std::byte b) { return (b & mask) != std::byte{0}; }))
      return true;
  }
  return false;
}

}  // namespace

ZeroScales find_zero_scales(const CheckpointReader& reader, const LogicalTensor& tensor) {
  ZeroScales found;
  const bool numbers = tensor.form.kind == FormKind::scaled || tensor.form.kind == FormKind::fp4;
  if (!numbers || !tensor.scale || tensor.form.transposed) return found;
  const StoredReader stored(reader, tensor);
  const std::uint64_t down = tensor.scale_rows(), across = tensor.scale_columns();
  std::vector<float> scales(across);
  for (std::uint64_t block_row = 0; block_row < tensor.slices * down && !interrupted(); ++block_row) {
    stored.decode_scales(block_row, 1, scales);
    const std::uint64_t in_slice = block_row % down * tensor.form.block_rows;
    const std::uint64_t first_row = block_row / down * tensor.rows + in_slice;
    const std::uint64_t rows = std::min(tensor.form.block_rows, tensor.rows - in_slice);
    for (std::uint64_t i = 0; i < across; ++i) {
      const std::uint64_t column = i * tensor.form.block_columns;
      if (scales[i] != 0 || !holds_codes(reader, tensor, first_row, rows, column,
                                         std::min(tensor.form.block_columns, tensor.columns - column)))
        continue;
      if (found.over_codes++ == 0) found.first_row = first_row, found.first_column = column;
    }
  }
  return found;
}

}  // namespace assay
