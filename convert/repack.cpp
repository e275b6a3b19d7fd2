#include "convert/repack.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/system/error.h"

namespace assay {
namespace {

struct Layout {
  std::uint64_t group;   // elements under one scale
  std::uint64_t groups;  // of a block
  ElementType scales;
};

std::optional<Layout> layout_of(ElementType type) {
  if (type == ElementType::MXFP4) return Layout{32, 1, ElementType::F8_E8M0};
  if (type == ElementType::NVFP4) return Layout{16, 4, ElementType::F8_E4M3};
  return std::nullopt;
}

// Of gpt-oss' experts, [in, out] each, codes lie by columns: what a GGUF takes for rows.
bool holds(const DerivedTensor::Piece& piece, const LogicalTensor& source, const Layout& layout) {
  const StoredForm& form = source.form;
  const bool blocked = form.transposed ? form.block_rows == layout.group && form.block_columns == 1
                                       : form.block_rows == 1 && form.block_columns == layout.group;
  const bool whole_matrix = piece.rows == source.rows && piece.first_row % source.rows == 0;
  const std::uint64_t inputs = form.transposed ? source.rows : source.columns;
  return form.kind == FormKind::fp4 && piece.transposed == form.transposed &&
         (!form.transposed || whole_matrix) && !source.composed && !source.input_factors &&
         form.scales == layout.scales && blocked && form.scale_factor == 1 &&
         inputs % (layout.group * layout.groups) == 0;
}

// Where the codes of a row lie, counted in rows of codes.
DerivedTensor::Row codes_of(const DerivedTensor& tensor, const StoredTensors& stored, std::uint64_t row) {
  if (!tensor.pieces.front().transposed) return tensor.source_of(row);
  for (const DerivedTensor::Piece& piece : tensor.pieces) {
    const LogicalTensor& source = stored.tensors[piece.source];
    const std::uint64_t columns = piece.columns == 0 ? source.columns : piece.columns;
    if (row < columns)
      return {piece.source,
              piece.first_row / source.rows * source.columns + piece.first_column + row * piece.column_step};
    row -= columns;
  }
  throw Error::internal("a row behind the last piece").tensor(tensor.name);
}

std::uint8_t nibble(std::span<const std::byte> codes, std::uint64_t element) {
  const auto byte = std::to_integer<std::uint8_t>(codes[element / 2]);
  return element % 2 == 0 ? byte & 0xF : byte >> 4;
}

// Scales first, then the codes: those of a group's first half in low halves of bytes, its second's in high
// ones.
void repack_block(const Layout& layout, std::span<const std::byte> scales, std::span<const std::byte> codes,
                  std::span<std::byte> out) {
  std::copy(scales.begin(), scales.end(), out.begin());
  const std::uint64_t half = layout.group / 2;
  for (std::uint64_t g = 0; g < layout.groups; ++g) {
    for (std::uint64_t j = 0; j < half; ++j) {
      const std::uint64_t element = g * layout.group + j;
      out[layout.groups + g * half + j] =
          static_cast<std::byte>(nibble(codes, element) | nibble(codes, element + half) << 4);
    }
  }
}

void refuse_special(const LogicalTensor& source, ElementType type, std::span<const std::byte> scales) {
  const bool special = std::any_of(scales.begin(), scales.end(), [&](std::byte scale) {
    return type == ElementType::MXFP4 ? scale == std::byte{0xFF} : std::to_integer<unsigned>(scale) >= 0x7F;
  });
  if (special)
    throw Error::refused("a block's scale is NaN or negative")
        .tensor(source.name)
        .remedy("the source is damaged");
}

}  // namespace

bool can_repack(const DerivedTensor& tensor, ElementType type, const StoredTensors& stored) {
  const auto layout = layout_of(type);
  if (!layout || tensor.pieces.empty() || !tensor.computed.empty() || tensor.offset != 0 || tensor.times)
    return false;
  return std::all_of(tensor.pieces.begin(), tensor.pieces.end(), [&](const DerivedTensor::Piece& piece) {
    return !piece.is_scaled() && holds(piece, stored.tensors[piece.source], *layout) &&
           piece.transposed == tensor.pieces.front().transposed;
  });
}

void repack_rows(const CheckpointReader& source, const StoredTensors& stored, const DerivedTensor& tensor,
                 ElementType type, std::uint64_t first, std::uint64_t count, std::span<std::byte> out) {
  const Layout layout = layout_of(type).value();
  const std::uint64_t groups = tensor.columns() / layout.group, blocks = groups / layout.groups;
  const std::uint64_t code_bytes = layout.group * layout.groups / 2, block_bytes = info(type).block_bytes;
  std::vector<std::byte> codes(tensor.columns() / 2), scales(groups);
  for (std::uint64_t r = 0; r < count; ++r) {
    const DerivedTensor::Row from = codes_of(tensor, stored, first + r);
    const LogicalTensor& held = stored.tensors[from.source];
    const auto& tensors = source.checkpoint().tensors;
    source.read(tensors[held.codes], from.row * codes.size(), codes);
    source.read(tensors[held.scale.value()], from.row * groups, scales);
    refuse_special(held, type, scales);
    for (std::uint64_t b = 0; b < blocks; ++b) {
      repack_block(layout, std::span(scales).subspan(b * layout.groups, layout.groups),
                   std::span(codes).subspan(b * code_bytes, code_bytes),
                   out.subspan((r * blocks + b) * block_bytes, block_bytes));
    }
  }
}

std::vector<float> factors_of(const CheckpointReader& source, const StoredTensors& stored,
                              const DerivedTensor& tensor) {
  std::vector<float> factors;
  const std::uint64_t matrices = tensor.shape.size() > 2 ? tensor.shape.front() : 1;
  const std::uint64_t rows = tensor.rows() / matrices;
  for (std::uint64_t i = 0; i < matrices; ++i) {
    const LogicalTensor& held = stored.tensors[codes_of(tensor, stored, i * rows).source];
    float& factor = factors.emplace_back(1.0F);
    if (!held.global_scale) continue;
    source.read(source.checkpoint().tensors[*held.global_scale], 0,
                std::as_writable_bytes(std::span(&factor, 1)));
    if (held.form.global == GlobalScale::divide) factor = 1 / factor;
    if (!(factor > 0) || !(factor <= std::numeric_limits<float>::max()))
      throw Error::refused(fmt::format("its tensor-wide scale is {}", factor))
          .tensor(held.name)
          .remedy("the source is damaged");
  }
  const bool none = std::all_of(factors.begin(), factors.end(), [](float factor) { return factor == 1; });
  return none ? std::vector<float>{} : factors;
}

}  // namespace assay
