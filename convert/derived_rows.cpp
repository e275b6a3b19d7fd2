#include "convert/derived_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "convert/plausible.h"
#include "convert/repack.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/float_loops.h"
#include "core/numeric/gguf_blocks.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::uint64_t kDerivedElements = 1 << 20;

std::vector<float> decoded(ElementType type, std::span<const std::byte> stored, std::size_t count) {
  std::vector<float> values(count);
  if (info(type).in_safetensors)
    simd::decode(type, stored, values.data());
  else
    dequantize(type, stored, values.data());
  return values;
}

ErrorSums exact(std::uint64_t elements) {
  ErrorSums none;
  none.elements = elements;
  return none;
}

// A table's whole numbers, which a float holds up to 2^24.
void store_whole(const DerivedOutput& output, std::span<const float> values, std::span<std::byte> stored) {
  constexpr float kLargest = 1 << 24;
  const auto is_whole = [](float x) { return std::fabs(x) <= kLargest && x == std::trunc(x); };
  if (!std::all_of(values.begin(), values.end(), is_whole))
    throw Error::refused("a table holds what is no whole number, or one beyond 2^24")
        .tensor(output.made.name);
  simd::encode(output.type, values, Overflow::saturate, stored.data());
}

std::optional<QuantizeFault> quantize(const DerivedOutput& output, std::uint64_t first,
                                      std::span<const float> values, std::span<std::byte> stored) {
  if (output.type == ElementType::I32 || output.type == ElementType::I64) {
    store_whole(output, values, stored);
    return std::nullopt;
  }
  if (output.importance.empty()) return gguf_quantize(output.type, values, stored.data());
  const std::uint64_t columns = output.made.columns();
  const std::uint64_t rows_a_matrix = output.made.rows() / (output.importance.size() / columns);
  const std::uint64_t row_bytes = stored.size() / (values.size() / columns);
  for (std::uint64_t row = 0; row * columns < values.size(); ++row) {
    const std::uint64_t matrix = (first + row) / rows_a_matrix;
    auto fault = gguf_quantize_row(output.type, values.subspan(row * columns, columns),
                                   std::span(output.importance).subspan(matrix * columns, columns),
                                   stored.subspan(row * row_bytes).data());
    if (!fault) continue;
    fault->index += row * columns;
    return fault;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t rows_a_piece(const DerivedTensor& tensor) {
  const std::uint64_t rows =
      std::max<std::uint64_t>(1, kDerivedElements / std::max<std::uint64_t>(1, tensor.columns()));
  const std::uint64_t unit = std::max<std::uint64_t>(1, tensor.head_rows);
  return std::max(unit, rows / unit * unit);
}

// Whether the bytes of the target are those of the source.
std::optional<std::uint32_t> DerivedRows::copied_from(const DerivedOutput& output) const {
  const auto source = output.made.same_as(plan_.stored);
  if (!source || plan_.stored.tensors[*source].quantized() ||
      plan_.stored.tensors[*source].form.codes != output.type)
    return std::nullopt;
  return source;
}

ErrorSums DerivedRows::make(const DerivedOutput& output, std::uint64_t first, std::uint64_t count,
                            std::span<std::byte> stored) const {
  const std::uint64_t columns = output.made.columns();
  if (const auto source = copied_from(output)) {
    const std::uint64_t row_bytes = storage_bytes(output.type, columns).value();
    source_.read(plan_.checkpoint.tensors[plan_.stored.tensors[*source].codes], first * row_bytes, stored);
    check_copied(output, stored, count * columns);
    return exact(count * columns);
  }
  std::vector<float> before(count * columns);
  reader_.read(output.made, first, count, before);
  check_values(output.made, before);
  if (output.repacked) {
    repack_rows(source_, plan_.stored, output.made, output.type, first, count, stored);
    return exact(before.size());
  }
  if (const auto fault = quantize(output, first, before, stored)) {
    const bool finite = fault->kind != QuantizeFault::Kind::not_finite;
    throw Error::refused(finite
                             ? fmt::format("a value is too large for {}", name(output.type))
                             : fmt::format("element {} is NaN or infinite", first * columns + fault->index))
        .tensor(output.made.name)
        .remedy(finite ? "choose bf16 or f32" : "the source is damaged");
  }
  ErrorSums sums;
  sums.add(before, decoded(output.type, stored, before.size()));
  if (!(sums.largest_error <= std::numeric_limits<float>::max()))
    throw Error::refused(fmt::format("a value is too large for {}", name(output.type)))
        .tensor(output.made.name)
        .remedy("choose bf16 or f32");
  return sums;
}

void DerivedRows::check_copied(const DerivedOutput& output, std::span<const std::byte> stored,
                               std::size_t count) const {
  if (!info(output.type).is_float) return;
  const std::vector<float> values = decoded(output.type, stored, count);
  if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
    throw Error::refused("a NaN or infinite value").tensor(output.made.name).remedy("the source is damaged");
}

void DerivedRows::check_values(const DerivedTensor& tensor, std::span<const float> values) const {
  if (tensor.pieces.empty()) return;
  const float amax = std::bit_cast<float>(largest_magnitude_bits(values.data(), values.size()));
  check_plausible(plan_.stored.tensors[tensor.pieces.front().source], amax, options_);
}

}  // namespace assay
