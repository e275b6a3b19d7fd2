#include "core/model/stored_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/composed_tensor.h"
#include "core/numeric/block_quantizer.h"
#include "core/numeric/ceil_div.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/gguf_blocks.h"
#include "core/numeric/gguf_nvfp4.h"
#include "core/system/error.h"
#include "core/system/scratch.h"

namespace assay {
namespace {

// The stored rows of a tensor; valid until the same thread reads others.
std::span<const std::byte> read_codes(const CheckpointReader& source, const LogicalTensor& tensor,
                                      std::uint64_t first, std::uint64_t count) {
  const ElementInfo& element = info(tensor.form.codes);
  if (tensor.columns % element.block_elements != 0)
    throw Error::input("a row ends within a byte").tensor(tensor.name);
  const std::uint64_t row_bytes = tensor.columns / element.block_elements * element.block_bytes;
  thread_local Scratch<std::byte> memory;
  const auto stored = memory.take(count * row_bytes);
  source.read(source.checkpoint().tensors[tensor.codes], first * row_bytes, stored);
  return stored;
}

// NVFP4's block scales take the factor up before the codes are multiplied, as ModelOpt's do.
void decode_times_factors(const CheckpointReader& source, const LogicalTensor& tensor,
                          const CheckpointTensor& stored, std::uint64_t first, std::uint64_t count,
                          std::span<float> out) {
  const ElementType type = tensor.form.codes;
  std::vector<float> factors(stored.bytes / sizeof(float));
  source.read(stored, 0, std::as_writable_bytes(std::span(factors)));
  const auto blocks = read_codes(source, tensor, first, count);
  const std::uint64_t bytes = blocks.size() / count;
  for (std::uint64_t r = 0; r < count; ++r) {
    const float factor = factors[factors.size() == 1 ? 0 : (first + r) / tensor.rows];
    const auto row = out.subspan(r * tensor.columns, tensor.columns);
    const auto coded = blocks.subspan(r * bytes, bytes);
    if (type == ElementType::NVFP4) {
      dequantize_nvfp4(coded, factor, row.data());
      continue;
    }
    if (info(type).in_safetensors)
      simd::decode(type, coded, row.data());
    else
      dequantize(type, coded, row.data());
    for (float& value : row) value *= factor;
  }
}

// Scales of `count` rows, `groups` a row, out of tiles of 128 rows by 4 groups: row 32·i + j and group k of a
// tile is its byte 16·j + 4·i + k.
void read_swizzled(const CheckpointReader& source, const CheckpointTensor& scale, std::uint64_t first,
                   std::uint64_t count, std::uint64_t groups, std::span<std::byte> out) {
  constexpr std::uint64_t kRows = 128, kGroups = 4, kTile = kRows * kGroups;
  const std::uint64_t band = ceil_div(groups, kGroups) * kTile, begin = first / kRows;
  std::vector<std::byte> tiles(((first + count - 1) / kRows + 1 - begin) * band);
  source.read(scale, begin * band, tiles);
  for (std::uint64_t r = 0; r < count; ++r) {
    const std::uint64_t row = first + r, within = row % kRows;
    for (std::uint64_t g = 0; g < groups; ++g) {
      out[r * groups + g] = tiles[(row / kRows - begin) * band + g / kGroups * kTile + within % 32 * 16 +
                                  within / 32 * 4 + g % kGroups];
    }
  }
}

// Of fused matrices there is one scale each, which stands for all of its rows of blocks.
void spread_over_rows(std::span<const std::uint64_t> parts, std::span<const float> scales,
                      std::uint64_t block_row, std::span<float> out) {
  std::size_t part = 0;
  std::uint64_t end = parts[0];
  for (float& scale : out) {
    while (block_row >= end && part + 1 < parts.size()) end += parts[++part];
    scale = scales[part];
    ++block_row;
  }
}

}  // namespace

CheckpointReader::CheckpointReader(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), files_(checkpoint.files.size()) {}

const File& CheckpointReader::file(std::uint32_t index) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<File>& file = files_.at(index);
  if (!file) {
    const CheckpointFile& known = checkpoint_.files[index];
    auto opened = std::make_unique<File>(File::open(known.path));
    if (opened->size() != known.bytes || (known.identity && *known.identity != opened->identity()))
      throw Error::input("changed since its header was read").in(opened->path());
    file = std::move(opened);
  }
  return *file;
}

void CheckpointReader::read(const CheckpointTensor& tensor, std::uint64_t offset,
                            std::span<std::byte> out) const {
  if (offset > tensor.bytes || out.size() > tensor.bytes - offset)
    throw Error::internal(
        fmt::format("{} bytes are read at {} of a tensor of {}", out.size(), offset, tensor.bytes))
        .tensor(tensor.name);
  file(tensor.file).read_exactly(tensor.offset + offset, out);
}

void CheckpointReader::read_rectangle(const CheckpointTensor& tensor, std::uint64_t row_bytes,
                                      std::uint64_t first_row, std::uint64_t rows, std::uint64_t first,
                                      std::span<std::byte> out) const {
  constexpr std::uint64_t kWorthACall = 4096;  // bytes that are copied in the time one more read takes
  if (rows == 0) return;
  const std::uint64_t width = out.size() / rows;
  if (width == row_bytes) return read(tensor, first_row * row_bytes, out);
  const bool at_once = row_bytes - width < kWorthACall;
  std::vector<std::byte> whole;
  if (at_once) {
    whole.resize(rows * row_bytes);
    read(tensor, first_row * row_bytes, whole);
  }
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto target = out.subspan(row * width, width);
    if (at_once)
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(row * row_bytes + first), width,
                  target.begin());
    else
      read(tensor, (first_row + row) * row_bytes + first, target);
  }
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
  if (is_put_together(tensor_))
    return DerivedReader(source_, *tensor_.composed->sources).read(tensor_.composed->made, first, count, out);
  if (const auto factors = details_of(tensor_).factors)
    return decode_times_factors(source_, tensor_, at(*factors), first, count, out);
  if (const RowDecoder decode = details_of(tensor_).decode)
    decode(source_, tensor_, first, count, out);
  else
    decode_stored(first, count, out);
  if (tensor_.input_factors) multiply_inputs(count, out);
}

void StoredReader::multiply_inputs(std::uint64_t count, std::span<float> out) const {
  const CheckpointTensor& stored = at(*tensor_.input_factors);
  std::vector<std::byte> bytes(stored.bytes);
  source_.read(stored, 0, bytes);
  std::vector<float> factors(tensor_.columns);
  simd::decode(stored.type, bytes, factors.data());
  for (std::uint64_t r = 0; r < count; ++r) {
    float* row = &out[r * tensor_.columns];
    for (std::uint64_t c = 0; c < tensor_.columns; ++c) row[c] *= factors[c];
  }
}

void StoredReader::decode_stored(std::uint64_t first, std::uint64_t count, std::span<float> out) const {
  switch (tensor_.form.kind) {
    case FormKind::plain: return decode_codes(first, count, out);
    case FormKind::packed:
      return tensor_.form.transposed ? decode_inputs_first(first, count, out)
                                     : decode_packed(first, count, out);
    case FormKind::codebook: return decode_codebook(first, count, out);
    case FormKind::fp4:
      if (tensor_.form.transposed) return decode_transposed_fp4(first, count, out);
      break;
    case FormKind::scaled: break;
  }
  decode_scaled(first, count, out);
}

void StoredReader::decode_codes(std::uint64_t first, std::uint64_t count, std::span<float> out) const {
  const auto stored = read_codes(source_, tensor_, first, count);
  if (info(tensor_.form.codes).in_safetensors)
    simd::decode(tensor_.form.codes, stored, out.data());
  else
    dequantize(tensor_.form.codes, stored, out.data());
}

// What is one for the whole tensor joins the scale of every block.
void StoredReader::finish_scales(std::span<float> scales) const {
  const StoredForm& form = tensor_.form;
  if (form.scale_factor != 1) {
    for (float& scale : scales) scale *= form.scale_factor;
  }
  if (form.global == GlobalScale::none) return;
  float global = 1;
  source_.read(at(tensor_.global_scale.value()), 0, std::as_writable_bytes(std::span(&global, 1)));
  for (float& scale : scales) {
    scale = form.global == GlobalScale::multiply ? scale * global : scale / global;
  }
}

void StoredReader::decode_scales(std::uint64_t block_row, std::uint64_t count, std::span<float> out) const {
  const FormDetails& details = details_of(tensor_);
  const auto& parts = details.parts;
  const ElementInfo& element = info(tensor_.form.scales);
  const std::uint64_t row_bytes = tensor_.scale_columns() * element.block_bytes;
  std::vector<std::byte> stored((parts.empty() ? count : parts.size()) * row_bytes);
  const CheckpointTensor& scale = at(tensor_.scale.value());
  if (details.swizzled)
    read_swizzled(source_, scale, block_row, count, tensor_.scale_columns(), stored);
  else
    source_.read(scale, parts.empty() ? block_row * row_bytes : 0, stored);
  if (parts.empty()) {
    simd::decode(tensor_.form.scales, stored, out.data());
  } else {
    std::vector<float> scales(parts.size());
    simd::decode(tensor_.form.scales, stored, scales.data());
    spread_over_rows(parts, scales, block_row, out.first(count));
  }
  finish_scales(out.first(count * tensor_.scale_columns()));
}

// Stored [columns, rows], 32 rows a scale: a strip of whole blocks of every stored row, transposed as it is made.
void StoredReader::decode_transposed_fp4(std::uint64_t first, std::uint64_t count,
                                         std::span<float> out) const {
  constexpr std::uint64_t kBlock = 32, kAtOnce = 64;
  const std::uint64_t rows = tensor_.rows, columns = tensor_.columns;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t slice = (first + done) / rows, row = (first + done) % rows;
    const std::uint64_t wanted = std::min(count - done, rows - row);
    const std::uint64_t begin = row / kBlock, blocks = (row + wanted - 1) / kBlock + 1 - begin;
    const std::uint64_t width = blocks * kBlock, skipped = row - begin * kBlock;
    std::vector<std::byte> stored(kAtOnce * width / 2), stored_scales(kAtOnce * blocks);
    std::vector<float> strip(kAtOnce * width), scales(kAtOnce * blocks);
    for (std::uint64_t top = 0; top < columns; top += kAtOnce) {
      const std::uint64_t lines = std::min(kAtOnce, columns - top);
      const auto codes_here = std::span(stored).first(lines * width / 2);
      const auto scales_here = std::span(stored_scales).first(lines * blocks);
      source_.read_rectangle(codes(), rows / 2, slice * columns + top, lines, begin * kBlock / 2, codes_here);
      source_.read_rectangle(at(*tensor_.scale), rows / kBlock, slice * columns + top, lines, begin,
                             scales_here);
      simd::decode(ElementType::F8_E8M0, scales_here, scales.data());
      simd::decode(ElementType::F4, codes_here, strip.data());
      scale_row(std::span(strip).first(lines * width), kBlock, scales.data());
      for (std::uint64_t r = 0; r < wanted; ++r) {
        for (std::uint64_t i = 0; i < lines; ++i)
          out[(done + r) * columns + top + i] = strip[i * width + skipped + r];
      }
    }
    done += wanted;
  }
}

void StoredReader::decode_scaled(std::uint64_t first, std::uint64_t count, std::span<float> out) const {
  const std::uint64_t columns = tensor_.columns;
  // Block rows begin anew in every slice.
  const auto block_row_of = [&](std::uint64_t row) {
    return row / tensor_.rows * tensor_.scale_rows() + row % tensor_.rows / tensor_.form.block_rows;
  };
  const std::uint64_t first_block = block_row_of(first);
  const std::uint64_t blocks = block_row_of(first + count - 1) - first_block + 1;
  thread_local Scratch<float> memory;
  const auto scales = memory.take(blocks * tensor_.scale_columns());
  decode_scales(first_block, blocks, scales);
  const auto stored = read_codes(source_, tensor_, first, count);
  const std::uint64_t row_bytes = stored.size() / count;
  for (std::uint64_t row = 0; row < count; ++row) {
    simd::decode_scaled(tensor_.form.codes, stored.subspan(row * row_bytes, row_bytes),
                        tensor_.form.block_columns,
                        &scales[(block_row_of(first + row) - first_block) * tensor_.scale_columns()],
                        out.subspan(row * columns, columns).data());
  }
}

}  // namespace assay
