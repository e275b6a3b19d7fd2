// Rows of the forms whose codes are integers in words, and of bitsandbytes' code books.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/model/composed_tensor.h"
#include "core/model/read_rectangle.h"
#include "core/model/stored_reader.h"
#include "core/numeric/codec_simd.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint32_t);

// GPTQ's first format stores z - 1. GPTQModel adds 1 to every field of a word at once, a carry running into
// the next field as the borrow did when it was written; 3-bit fields, which cross words, one by one.
void add_one_to_fields(const IntPacking& packing, std::span<std::uint32_t> words) {
  if (packing.bits == 3) return;
  const std::uint32_t ones = 0xFFFFFFFFu / packing.mask();
  for (std::uint32_t& word : words) word += ones;
}

// Signed codes -2^(b-1) … become 0 …, in the same order: q - z does not change.
void flip_sign_bits(std::uint32_t bits, std::span<std::uint8_t> codes) {
  const auto sign = static_cast<std::uint8_t>(1u << (bits - 1));
  for (std::uint8_t& code : codes) code ^= sign;
}

// A number for every group of `count` rows from `first` on, row by row.
std::vector<float> group_numbers(const CheckpointReader& source, const LogicalTensor& tensor,
                                 std::uint32_t place, std::uint64_t first, std::uint64_t count) {
  const CheckpointTensor& stored = source.checkpoint().tensors[place];
  const std::uint64_t groups = tensor.scale_columns();
  if (!details_of(tensor).groups_first) return read_floats(source, stored, groups, first, count, 0, groups);
  std::vector<float> out(count * groups);
  for (std::uint64_t done = 0; done < count;) {  // [groups, rows] of each slice in turn
    const std::uint64_t slice = (first + done) / tensor.rows, row = (first + done) % tensor.rows;
    const std::uint64_t rows = std::min(count - done, tensor.rows - row);
    const auto numbers = read_floats(source, stored, tensor.rows, slice * groups, groups, row, rows);
    for (std::uint64_t g = 0; g < groups; ++g) {
      for (std::uint64_t r = 0; r < rows; ++r) out[(done + r) * groups + g] = numbers[g * rows + r];
    }
    done += rows;
  }
  return out;
}

std::vector<float> group_scales(const CheckpointReader& source, const LogicalTensor& tensor,
                                std::uint64_t first, std::uint64_t count) {
  if (details_of(tensor).unscaled) return std::vector<float>(count * tensor.scale_columns(), 1.0F);
  return group_numbers(source, tensor, *tensor.scale, first, count);
}

}  // namespace

// For every column its group; empty where columns follow one another. compressed-tensors fills an index that
// is not in use with -1.
std::vector<std::uint32_t> StoredReader::read_group_index(std::uint64_t groups) const {
  if (!tensor_.group_index) return {};
  std::vector<std::uint32_t> index(tensor_.columns);
  source_.read(at(*tensor_.group_index), 0, std::as_writable_bytes(std::span(index)));
  if (std::find(index.begin(), index.end(), 0xFFFFFFFFu) != index.end()) return {};
  for (const std::uint32_t group : index) {
    if (group >= groups) {
      throw Error::input(fmt::format("names group {}, but there are {}", group, groups))
          .tensor(at(*tensor_.group_index).name);
    }
  }
  return index;
}

// ModelOpt's INT4: of every byte the half that is this row's.
void StoredReader::decode_paired_rows(std::uint64_t first, std::uint64_t count, std::span<float> out) const {
  const std::uint64_t columns = tensor_.columns, groups = tensor_.scale_columns();
  const std::uint64_t width = tensor_.form.block_columns, pair = first / 2;
  const auto bytes = read_rectangle<std::uint8_t>(source_, codes(), columns, pair,
                                                  (first + count - 1) / 2 + 1 - pair, 0, columns);
  const std::vector<float> scales = group_scales(source_, tensor_, first, count);
  for (std::uint64_t r = 0; r < count; ++r) {
    const std::uint64_t row = first + r;
    const std::uint8_t* codes_here = &bytes[(row / 2 - pair) * columns];
    for (std::uint64_t c = 0; c < columns; ++c) {
      const int nibble = row % 2 == 0 ? codes_here[c] & 0xF : codes_here[c] >> 4;
      const int value = nibble < 8 ? nibble : nibble - 16;
      out[r * columns + c] = static_cast<float>(value) * scales[r * groups + c / width];
    }
  }
}

void StoredReader::decode_packed(std::uint64_t first, std::uint64_t count, std::span<float> out) const {
  if (tensor_.form.packed.paired_rows) return decode_paired_rows(first, count, out);
  const PackedForm& form = tensor_.form.packed;
  const std::uint64_t columns = tensor_.columns, groups = tensor_.scale_columns();
  const std::uint64_t width = tensor_.form.block_columns;
  const std::uint64_t words = form.codes.words(columns);
  const auto stored = read_rectangle<std::uint32_t>(source_, codes(), words, first, count, 0, words);
  const FormDetails& details = details_of(tensor_);
  using Offset = FormDetails::Offset;
  const std::vector<float> scales = group_scales(source_, tensor_, first, count);
  std::vector<float> numbers;  // biases, or zero points as they are
  if (form.zero == ZeroPoint::bias || details.offset != Offset::zero_point)
    numbers = group_numbers(source_, tensor_, *tensor_.zeros, first, count);
  if (details.unscaled && form.zero == ZeroPoint::bias) numbers.assign(numbers.size(), 0.0F);
  const std::vector<std::uint32_t> index = read_group_index(groups);

  std::vector<std::uint8_t> q(columns), z(groups, static_cast<std::uint8_t>(1u << (form.codes.bits - 1)));
  std::vector<std::uint32_t> zero_words(2 * groups);
  const std::uint64_t zero_rows = form.zero == ZeroPoint::packed ? form.zeros.words(tensor_.rows) : 0;
  for (std::uint64_t r = 0; r < count; ++r) {
    unpack_line(form.codes, std::span(stored).subspan(r * words, words), 0, q);
    if (details.twos_complement) flip_sign_bits(form.codes.bits, q);
    const float* s = &scales[r * groups];
    float* w = &out[r * columns];
    if (form.zero == ZeroPoint::packed) {
      const std::uint64_t slice = (first + r) / tensor_.rows, row = (first + r) % tensor_.rows;
      const std::uint64_t lines = runs_over(form.zeros, row) ? 2 : 1;
      source_.read(at(*tensor_.zeros), (slice * zero_rows + form.zeros.first_word(row)) * groups * kWord,
                   std::as_writable_bytes(std::span(zero_words).first(lines * groups)));
      unpack_across(form.zeros, std::span(zero_words).first(groups), std::span(zero_words).subspan(groups),
                    row, z);
      if (details.twos_complement) flip_sign_bits(form.zeros.bits, z);
    }
    if (!index.empty()) {
      for (std::uint64_t c = 0; c < columns; ++c) w[c] = static_cast<float>(q[c] - z[index[c]]) * s[index[c]];
      continue;
    }
    for (std::uint64_t g = 0, c = 0; g < groups; ++g) {
      const std::uint64_t end = std::min(columns, c + width);
      if (form.zero == ZeroPoint::bias || details.offset == Offset::bias) {
        const float scale = s[g], bias = numbers[r * groups + g];
        const int middle = form.zero == ZeroPoint::bias ? 0 : z[g];
        for (; c < end; ++c) {
          const float product = static_cast<float>(q[c] - middle) * scale;
          w[c] = product + bias;
        }
      } else if (details.offset == Offset::number) {
        const float scale = s[g], zero = numbers[r * groups + g];
        for (; c < end; ++c) w[c] = (static_cast<float>(q[c] - z[g]) - zero) * scale;
      } else {
        const int zero = z[g];
        const float scale = s[g];
        for (; c < end; ++c) w[c] = static_cast<float>(q[c] - zero) * scale;
      }
    }
  }
}

// GPTQ and AWQ: stored as [inputs, outputs]. The rows wanted are a strip of every stored row.
void StoredReader::decode_inputs_first(std::uint64_t first, std::uint64_t count, std::span<float> out) const {
  constexpr std::uint64_t kAtOnce = 64;  // stored rows; a multiple of 32, so that none begins within a word
  const PackedForm& form = tensor_.form.packed;
  const FormDetails& details = details_of(tensor_);
  const std::uint64_t outputs = tensor_.rows, inputs = tensor_.columns, groups = tensor_.scale_columns();
  const std::vector<std::uint32_t> index = read_group_index(groups);
  const std::vector<float> scales =
      details.unscaled ? std::vector<float>(groups * count, 1.0F)
                       : read_floats(source_, at(*tensor_.scale), outputs, 0, groups, first, count);

  std::vector<std::uint8_t> zeros(groups * count, static_cast<std::uint8_t>(1u << (form.codes.bits - 1)));
  if (form.zero != ZeroPoint::middle) {
    const std::uint64_t begin = form.zeros.first_word(first), row_words = form.zeros.words(outputs);
    const std::uint64_t end =
        form.zeros.first_word(first + count - 1) + 1 + (runs_over(form.zeros, first + count - 1) ? 1 : 0);
    auto words =
        read_rectangle<std::uint32_t>(source_, at(*tensor_.zeros), row_words, 0, groups, begin, end - begin);
    if (form.zero == ZeroPoint::packed_less_1) add_one_to_fields(form.zeros, words);
    for (std::uint64_t g = 0; g < groups; ++g) {
      const auto line = std::span(zeros).subspan(g * count, count);
      unpack_line(form.zeros, std::span(words).subspan(g * (end - begin), end - begin), first, line);
      if (details.twos_complement) flip_sign_bits(form.zeros.bits, line);
      if (form.zero == ZeroPoint::packed_less_1 && form.zeros.bits == 3) {
        for (std::uint8_t& zero : line) zero = (zero + 1) & 7;
      }
    }
  }

  const std::uint64_t all_words = form.codes_across ? form.codes.words(inputs) : inputs;
  const std::uint64_t row_words = form.codes_across ? outputs : form.codes.words(outputs);
  const std::uint64_t first_word = form.codes_across ? first : form.codes.first_word(first);
  const std::uint64_t words =
      form.codes_across ? count : form.codes.first_word(first + count - 1) + 1 - first_word;
  std::vector<std::uint8_t> q(count);
  std::vector<float> strip(kAtOnce * count);
  for (std::uint64_t top = 0; top < inputs; top += kAtOnce) {
    const std::uint64_t lines = std::min(kAtOnce, inputs - top);
    const std::uint64_t first_line = form.codes_across ? form.codes.first_word(top) : top;
    const std::uint64_t word_lines =
        form.codes_across ? std::min(all_words - first_line, kAtOnce / 32 * form.codes.bits) : lines;
    const auto stored =
        read_rectangle<std::uint32_t>(source_, codes(), row_words, first_line, word_lines, first_word, words);
    for (std::uint64_t i = 0; i < lines; ++i) {
      if (form.codes_across) {
        const std::uint64_t line = form.codes.first_word(top + i) - first_line;
        const std::uint64_t next = std::min(line + 1, word_lines - 1);
        unpack_across(form.codes, std::span(stored).subspan(line * words, words),
                      std::span(stored).subspan(next * words, words), top + i, q);
      } else {
        unpack_line(form.codes, std::span(stored).subspan(i * words, words), first, q);
      }
      if (details.twos_complement) flip_sign_bits(form.codes.bits, q);
      const std::uint64_t group = index.empty() ? (top + i) / tensor_.form.block_columns : index[top + i];
      const std::uint8_t* z = &zeros[group * count];
      const float* s = &scales[group * count];
      float* w = &strip[i * count];
      for (std::uint64_t c = 0; c < count; ++c) w[c] = static_cast<float>(q[c] - z[c]) * s[c];
    }
    for (std::uint64_t r = 0; r < count; ++r) {
      for (std::uint64_t i = 0; i < lines; ++i) out[r * inputs + top + i] = strip[i * count + r];
    }
  }
}

// Blocks run over the elements as they lie, whatever the rows.
void StoredReader::decode_codebook(std::uint64_t first, std::uint64_t count, std::span<float> out) const {
  const CodebookForm& form = tensor_.form.codebook;
  const std::uint64_t begin = first * tensor_.columns, size = count * tensor_.columns;
  std::array<float, 16> values;
  source_.read(at(*tensor_.table), 0, std::as_writable_bytes(std::span(values)));

  const std::uint64_t first_block = begin / form.block;
  const std::uint64_t blocks = (begin + size - 1) / form.block + 1 - first_block;
  std::vector<float> scales(blocks);
  if (form.nested == 0) {
    source_.read(at(*tensor_.scale), first_block * sizeof(float), std::as_writable_bytes(std::span(scales)));
  } else {
    std::vector<std::uint8_t> absmax(blocks);
    source_.read(at(*tensor_.scale), first_block, std::as_writable_bytes(std::span(absmax)));
    std::array<float, 256> table;
    source_.read(at(*tensor_.nested_table), 0, std::as_writable_bytes(std::span(table)));
    const std::uint64_t first_nested = first_block / form.nested;
    std::vector<float> nested((first_block + blocks - 1) / form.nested + 1 - first_nested);
    source_.read(at(*tensor_.nested_scale), first_nested * sizeof(float),
                 std::as_writable_bytes(std::span(nested)));
    for (std::uint64_t b = 0; b < blocks; ++b) {
      const float product = table[absmax[b]] * nested[(first_block + b) / form.nested - first_nested];
      scales[b] = product + form.offset;
    }
  }

  const std::uint64_t first_byte = begin / 2;
  std::vector<std::uint8_t> bytes((begin + size + 1) / 2 - first_byte);
  source_.read(codes(), first_byte, std::as_writable_bytes(std::span(bytes)));
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint64_t element = begin + i;
    const std::uint8_t pair = bytes[element / 2 - first_byte];
    out[i] = values[element % 2 == 0 ? pair >> 4 : pair & 0xF] * scales[element / form.block - first_block];
  }
}

}  // namespace assay
