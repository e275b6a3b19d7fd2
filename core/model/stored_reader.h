// Rows of a logical tensor as float32, whatever it is stored in; memory only for the rows asked for (and, of
// a packed form, for their zero points and scales).
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/stored_form.h"
#include "core/system/file.h"

namespace assay {

// The files of a checkpoint, opened when first needed and watched for change. Safe from several threads.
class CheckpointReader {
 public:
  explicit CheckpointReader(const Checkpoint& checkpoint);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  // Throws Error::input when the file is not as long as it was when its header was read.
  const File& file(std::uint32_t index) const;
  void read(const CheckpointTensor& tensor, std::uint64_t offset, std::span<std::byte> out) const;
  // `rows` rows of out.size() / rows bytes each, from byte `first` of rows that are row_bytes long.
  void read_rectangle(const CheckpointTensor& tensor, std::uint64_t row_bytes, std::uint64_t first_row,
                      std::uint64_t rows, std::uint64_t first, std::span<std::byte> out) const;
  // Throws Error::input when an opened file is no longer the one that was opened.
  void check_unchanged() const;

 private:
  const Checkpoint& checkpoint_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<File>> files_;
};

class StoredReader {
 public:
  // Both outlive this.
  StoredReader(const CheckpointReader& source, const LogicalTensor& tensor)
      : source_(source), tensor_(tensor) {}

  // Rows `first`, `first + 1` … of all slices on end; `out` has room for count × columns. A scaled value is
  // float32(code) × float32(scale), rounded once; FP4 multiplies block scale and global scale first; a packed
  // one is float32(q - z) × float32(scale). Factors of inputs come last.
  void decode_rows(std::uint64_t first, std::uint64_t count, std::span<float> out) const;

  // The scales of a row of blocks: scale_columns() of them, of a form that is not transposed. `block_row`
  // counts over all slices.
  void decode_scales(std::uint64_t block_row, std::uint64_t count, std::span<float> out) const;

 private:
  void decode_stored(std::uint64_t first, std::uint64_t count, std::span<float> out) const;
  void multiply_inputs(std::uint64_t count, std::span<float> out) const;
  void decode_scaled(std::uint64_t first, std::uint64_t count, std::span<float> out) const;
  void decode_codes(std::uint64_t first, std::uint64_t count, std::span<float> out) const;
  void decode_transposed_fp4(std::uint64_t first, std::uint64_t count, std::span<float> out) const;
  // stored_reader_packed.cpp
  void decode_packed(std::uint64_t first, std::uint64_t count, std::span<float> out) const;
  void decode_paired_rows(std::uint64_t first, std::uint64_t count, std::span<float> out) const;
  void decode_inputs_first(std::uint64_t first, std::uint64_t count, std::span<float> out) const;
  void decode_codebook(std::uint64_t first, std::uint64_t count, std::span<float> out) const;
  std::vector<std::uint32_t> read_group_index(std::uint64_t groups) const;
  const CheckpointTensor& at(std::uint32_t place) const { return source_.checkpoint().tensors[place]; }
  const CheckpointTensor& codes() const { return at(tensor_.codes); }
  void finish_scales(std::span<float> scales) const;

  const CheckpointReader& source_;
  const LogicalTensor& tensor_;
};

}  // namespace assay
