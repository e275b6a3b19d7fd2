#include "core/model/zero_scales.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/model/composed_tensor.h"
#include "core/numeric/codec_simd.h"
#include "core/system/threads.h"

namespace assay {
namespace {

// The bits of a byte of codes that are set in no zero: signs do not count.
std::byte nonzero_bits(const LogicalTensor& tensor) {
  if (tensor.form.kind == FormKind::fp4) return std::byte{0x77};
  return tensor.form.codes == ElementType::I8 ? std::byte{0xFF} : std::byte{0x7F};
}

struct BlockPlace {
  std::uint64_t row, rows, column, columns;  // rows over all slices
};
BlockPlace place_of(const LogicalTensor& tensor, std::uint64_t block_row, std::uint64_t block_column) {
  const StoredForm& form = tensor.form;
  const std::uint64_t down = tensor.scale_rows(), in_slice = block_row % down * form.block_rows;
  const std::uint64_t column = block_column * form.block_columns;
  return {block_row / down * tensor.rows + in_slice, std::min(form.block_rows, tensor.rows - in_slice),
          column, std::min(form.block_columns, tensor.columns - column)};
}

// A packed form as numbers for every group and row: its scales lie [rows, groups], or [groups, rows].
struct PackedScales {
  std::vector<float> values;
  bool groups_first = false;
};
PackedScales read_scales(const CheckpointReader& reader, const LogicalTensor& tensor, std::uint64_t first,
                         std::uint64_t rows) {
  const CheckpointTensor& stored = reader.checkpoint().tensors[*tensor.scale];
  const std::uint64_t groups = tensor.scale_columns(), size = info(stored.type).block_bytes;
  PackedScales scales{std::vector<float>(rows * groups), tensor.form.transposed};
  std::vector<std::byte> bytes(rows * groups * size);
  if (scales.groups_first)
    reader.read_rectangle(stored, tensor.rows * size, 0, groups, first * size, bytes);
  else
    reader.read_rectangle(stored, groups * size, first, rows, 0, bytes);
  simd::decode(stored.type, bytes, scales.values.data());
  return scales;
}

// Of the groups whose scale is zero, those that hold an integer other than their zero point.
class PackedRows {
 public:
  PackedRows(const CheckpointReader& reader, const LogicalTensor& tensor)
      : reader_(reader), tensor_(tensor), unscaled_(tensor), index_(read_index()) {
    FormDetails details = details_of(tensor);
    details.unscaled = true;
    set_details(unscaled_, std::move(details));
  }

  void examine(std::uint64_t first, std::uint64_t rows, ZeroScales& found) const {
    const std::uint64_t columns = tensor_.columns;
    const PackedScales scales = read_scales(reader_, tensor_, first, rows);
    if (std::find(scales.values.begin(), scales.values.end(), 0.0F) == scales.values.end()) return;
    std::vector<float> integers(rows * columns);
    StoredReader(reader_, unscaled_).decode_rows(first, rows, integers);
    std::vector<bool> counted(scales.values.size());
    for (std::uint64_t i = 0; i < integers.size(); ++i) {
      const std::uint64_t row = i / columns, column = i % columns, group = group_of(column);
      const std::uint64_t scale =
          scales.groups_first ? group * rows + row : row * tensor_.scale_columns() + group;
      if (integers[i] == 0 || scales.values[scale] != 0 || counted[scale]) continue;
      counted[scale] = true;
      if (found.over_codes++ == 0) found.first_row = first + row, found.first_column = column;
    }
  }

 private:
  // Empty where columns follow one another; compressed-tensors fills an index that is not in use with -1. One that
  // names groups which are not there is a finding of its own (numbers.group_index).
  std::vector<std::uint32_t> read_index() const {
    std::vector<std::uint32_t> index;
    if (!tensor_.group_index) return index;
    index.resize(tensor_.columns);
    reader_.read(reader_.checkpoint().tensors[*tensor_.group_index], 0,
                 std::as_writable_bytes(std::span(index)));
    const std::uint64_t groups = tensor_.scale_columns();
    if (std::any_of(index.begin(), index.end(), [&](std::uint32_t group) { return group >= groups; }))
      index.clear();
    return index;
  }

  std::uint64_t group_of(std::uint64_t column) const {
    return index_.empty() ? column / tensor_.form.block_columns : index_[column];
  }

  const CheckpointReader& reader_;
  const LogicalTensor& tensor_;
  LogicalTensor unscaled_;
  std::vector<std::uint32_t> index_;
};

// Other orders of scales, and zero points that are numbers, are not judged.
bool is_judged(const LogicalTensor& tensor) {
  const FormDetails& details = details_of(tensor);
  return tensor.form.kind == FormKind::packed && tensor.scale && !is_put_together(tensor) &&
         !details.groups_first && details.decode == nullptr &&
         details.offset == FormDetails::Offset::zero_point;
}

ZeroScales find_in_packed(const CheckpointReader& reader, const LogicalTensor& tensor) {
  constexpr std::uint64_t kMostRows = 256, kMostValues = 1 << 22;
  ZeroScales found;
  const PackedRows packed(reader, tensor);
  const std::uint64_t step =
      std::clamp<std::uint64_t>(kMostValues / std::max<std::uint64_t>(1, tensor.columns), 1, kMostRows);
  for (std::uint64_t first = 0; first < tensor.all_rows() && !interrupted(); first += step)
    packed.examine(first, std::min(step, tensor.all_rows() - first), found);
  return found;
}

}  // namespace

ZeroScales find_zero_scales(const CheckpointReader& reader, const LogicalTensor& tensor) {
  ZeroScales found;
  if (is_judged(tensor)) return find_in_packed(reader, tensor);
  const bool numbers = tensor.form.kind == FormKind::scaled || tensor.form.kind == FormKind::fp4;
  if (!numbers || !tensor.scale || tensor.form.transposed) return found;
  const StoredReader stored(reader, tensor);
  const std::uint64_t down = tensor.scale_rows(), across = tensor.scale_columns();
  std::vector<float> scales(across);
  for (std::uint64_t block_row = 0; block_row < tensor.slices * down && !interrupted(); ++block_row) {
    stored.decode_scales(block_row, 1, scales);
    for (std::uint64_t i = 0; i < across; ++i) {
      if (scales[i] != 0 || !block_holds_codes(reader, tensor, block_row, i)) continue;
      const BlockPlace block = place_of(tensor, block_row, i);
      if (found.over_codes++ == 0) found.first_row = block.row, found.first_column = block.column;
    }
  }
  return found;
}

bool block_holds_codes(const CheckpointReader& reader, const LogicalTensor& tensor, std::uint64_t block_row,
                       std::uint64_t block_column) {
  const BlockPlace block = place_of(tensor, block_row, block_column);
  const std::uint64_t in_a_byte = tensor.form.kind == FormKind::fp4 ? 2 : 1;
  const CheckpointTensor& codes = reader.checkpoint().tensors[tensor.codes];
  const std::uint64_t row_bytes = tensor.columns / in_a_byte;
  std::vector<std::byte> bytes(block.columns / in_a_byte);
  const std::byte mask = nonzero_bits(tensor);
  for (std::uint64_t row = block.row; row < block.row + block.rows; ++row) {
    reader.read(codes, row * row_bytes + block.column / in_a_byte, bytes);
    if (std::any_of(bytes.begin(), bytes.end(), [&](std::byte b) { return (b & mask) != std::byte{0}; }))
      return true;
  }
  return false;
}

}  // namespace assay
