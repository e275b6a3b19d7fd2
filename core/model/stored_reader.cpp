#include "core/model/stored_reader.h"

#include <fmt/format.h>

#include "core/numeric/block_quantizer.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/gguf_blocks.h"
#include "core/system/error.h"

namespace assay {

CheckpointReader::CheckpointReader(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), files_(checkpoint.files.size()) {}

const File& CheckpointReader::file(std::uint32_t index) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<File>& file = files_.at(index);
  if (!file) {
    file = std::make_unique<File>(File::open(checkpoint_.files[index].path));
    if (file->size() != checkpoint_.files[index].bytes)
      throw Error::input("changed size since its header was read").in(file->path());
  }
  return *file;
}

void CheckpointReader::read(const CheckpointTensor& tensor, std::uint64_t offset,
                            std::span<std::byte> out) const {
  if (offset > tensor.bytes || out.size() > tensor.bytes - offset)
    throw Error::internal("a read beyond the end of a tensor").tensor(tensor.name);
  file(tensor.file).read_exactly(tensor.offset + offset, out);
}

void CheckpointReader::check_unchanged() const {
  const std::lock_guard lock(mutex_);
  for (const auto& file : files_) {
    if (file && file->identity_now() != file->identity())
      throw Error::input("changed while it was read")
          .in(file->path())
          .remedy("start again once it is at rest");
  }
}

void StoredReader::decode_rows(std::uint64_t first, std::uint64_t count, std::span<float> out) const {
  if (count == 0 || tensor_.columns == 0) return;
  if (tensor_.quantized())
    decode_scaled(first, count, out);
  else
    decode_codes(first, count, out);
}

void StoredReader::decode_codes(std::uint64_t first, std::uint64_t count, std::span<float> out) const {
  const ElementInfo& element = info(tensor_.form.codes);
  if (tensor_.columns % element.block_elements != 0)
    throw Error::input("a row ends within a byte").tensor(tensor_.name);
  const std::uint64_t row_bytes = tensor_.columns / element.block_elements * element.block_bytes;
  std::vector<std::byte> stored(count * row_bytes);
  source_.read(codes(), first * row_bytes, stored);
  if (element.in_safetensors)
    simd::decode(tensor_.form.codes, stored, out.data());
  else
    dequantize(tensor_.form.codes, stored, out.data());
}

float StoredReader::global_scale() const {
  if (!tensor_.global_scale) return 1.0F;
  float value = 0;
  source_.read(source_.checkpoint().tensors[*tensor_.global_scale], 0,
               std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

void StoredReader::decode_scales(std::uint64_t block_row, std::uint64_t count, std::span<float> out) const {
  const ElementInfo& element = info(tensor_.form.scales);
  const std::uint64_t row_bytes = tensor_.scale_columns() * element.block_bytes;
  std::vector<std::byte> stored(count * row_bytes);
  source_.read(source_.checkpoint().tensors[tensor_.scale.value()], block_row * row_bytes, stored);
  simd::decode(tensor_.form.scales, stored, out.data());
  if (tensor_.form.global == GlobalScale::none) return;
  const float global = global_scale();
  for (float& scale : out.first(count * tensor_.scale_columns())) {
    scale = tensor_.form.global == GlobalScale::multiply ? scale * global : scale / global;
  }
}

void StoredReader::decode_scaled(std::uint64_t first, std::uint64_t count, std::span<float> out) const {
  decode_codes(first, count, out);
  const std::uint64_t columns = tensor_.columns;
  // Block rows begin anew in every slice.
  const auto block_row_of = [&](std::uint64_t row) {
    return row / tensor_.rows * tensor_.scale_rows() + row % tensor_.rows / tensor_.form.block_rows;
  };
  const std::uint64_t first_block = block_row_of(first);
  const std::uint64_t blocks = block_row_of(first + count - 1) - first_block + 1;
  std::vector<float> scales(blocks * tensor_.scale_columns());
  decode_scales(first_block, blocks, scales);
  for (std::uint64_t row = 0; row < count; ++row) {
    const float* scale = &scales[(block_row_of(first + row) - first_block) * tensor_.scale_columns()];
    scale_row(out.subspan(row * columns, columns), tensor_.form.block_columns, scale);
  }
}

}  // namespace assay
