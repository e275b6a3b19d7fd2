#include "convert/fp8_cast.h"

#include <algorithm>
#include <vector>

#include "core/numeric/e4m3_to_bf16.h"
#include "core/system/scratch.h"

namespace assay {
namespace {

// A block's table and its counts cost what casting some hundred codes costs.
constexpr std::uint64_t kWorthATable = 1024;
constexpr float kImplausible = 448;

bool is_worth_it(const LogicalTensor& tensor, std::uint64_t rows) {
  const StoredForm& form = tensor.form;
  return is_code_by_scale(tensor) && form.codes == ElementType::F8_E4M3 && !form.transposed && rows > 0 &&
         std::min(form.block_rows, rows) * std::min(form.block_columns, tensor.columns) >= kWorthATable;
}

}  // namespace

bool is_code_by_scale(const LogicalTensor& tensor) {
  return tensor.form.kind == FormKind::scaled && tensor.scale && !tensor.global_scale && !tensor.zeros &&
         !tensor.group_index && !tensor.table && !tensor.input_factors && !tensor.composed;
}

bool cast_fp8_to_bf16(const CheckpointReader& source, const LogicalTensor& tensor, std::uint64_t first,
                      std::uint64_t rows, std::span<std::byte> out, ErrorSums& sums) {
  if (!is_worth_it(tensor, rows)) return false;
  thread_local Scratch<std::uint8_t> memory;
  const std::uint64_t columns = tensor.columns, width = tensor.form.block_columns;
  const auto codes = memory.take(rows * columns);
  source.read(source.checkpoint().tensors[tensor.codes], first * columns, std::as_writable_bytes(codes));
  std::vector<float> scales(tensor.scale_columns());
  ErrorSums all;
  for (std::uint64_t done = 0; done < rows;) {
    // Block rows begin anew in every slice.
    const std::uint64_t row = (first + done) % tensor.rows, slice = (first + done) / tensor.rows;
    const std::uint64_t block_row = row / tensor.form.block_rows;
    const std::uint64_t end = std::min((block_row + 1) * tensor.form.block_rows, tensor.rows);
    const std::uint64_t together = std::min(rows - done, end - row);
    StoredReader(source, tensor).decode_scales(slice * tensor.scale_rows() + block_row, 1, scales);
    for (std::uint64_t column = 0; column < columns; column += width) {
      const std::uint64_t at = done * columns + column, wide = std::min(width, columns - column);
      const auto block = e4m3_to_bf16(codes.data() + at, together, wide, columns, scales[column / width],
                                      reinterpret_cast<std::uint16_t*>(out.data()) + at);
      if (!block || !(block->largest < kImplausible)) return false;
      all.add(block->sums, together * wide);
    }
    done += together;
  }
  sums.add(all);
  return true;
}

}  // namespace assay
