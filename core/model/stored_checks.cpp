#include "core/model/stored_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace assay {
namespace {

using Shape = std::vector<std::uint64_t>;

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// Words that hold `count` values of `bits` bits each; sizes are below 2^32, so nothing overflows.
std::uint64_t words(std::uint64_t count, std::uint64_t bits, std::uint64_t word_bits) {
  return ceil_div(count * bits, word_bits);
}

// As [out, in], whatever the stored order; leading dimensions (stacked experts) apart.
struct Matrix {
  Shape leading;
  std::uint64_t out = 1, in = 1;
};
Matrix as_matrix(const TensorSpec& spec) {
  Matrix m;
  if (spec.shape.size() < 2) return m;
  m.leading.assign(spec.shape.begin(), spec.shape.end() - 2);
  m.out = spec.shape[spec.shape.size() - 2];
  m.in = spec.shape.back();
  if (spec.input_major) std::swap(m.out, m.in);
  return m;
}

// Stacked experts keep their leading dimension in front of the matrix.
bool equals(const Shape& shape, const Shape& leading, std::initializer_list<std::uint64_t> rest) {
  if (shape.size() != leading.size() + rest.size()) return false;
  return std::equal(leading.begin(), leading.end(), shape.begin()) &&
         std::equal(rest.begin(), rest.end(), shape.begin() + static_cast<std::ptrdiff_t>(leading.size()));
}

struct Block {
  std::uint64_t rows, columns;
};
Block configured_block(const std::optional<QuantizationConfig>& quantization) {
  Block block{128, 128};  // DeepSeek's, where the config does not say
  if (!quantization) return block;
  if (quantization->block_rows) return {*quantization->block_rows, *quantization->block_columns};
  for (const auto& group : quantization->groups) {
    if (group.block_rows) return {*group.block_rows, *group.block_columns};
  }
  return block;
}

std::uint64_t configured_group(const std::optional<QuantizationConfig>& quantization) {
  if (!quantization) return 0;
  if (quantization->group_size) return *quantization->group_size;
  for (const auto& group : quantization->groups) {
    if (group.group_size) return *group.group_size;
  }
  return 0;
}

// " (the grid of 64x64 blocks)", when one of the usual blocks explains it.
std::string explain_grid(const Matrix& m, const Shape& grid) {
  for (const std::uint64_t block : {256, 128, 64, 32, 16}) {
    if (equals(grid, m.leading, {ceil_div(m.out, block), ceil_div(m.in, block)}))
      return fmt::format(" (the grid of {0}x{0} blocks)", block);
  }
  return {};
}

std::optional<std::string> block_grid_fault(const Matrix& m, const Shape& grid, const Block& block) {
  const std::uint64_t rows = ceil_div(m.out, block.rows), columns = ceil_div(m.in, block.columns);
  if (equals(grid, m.leading, {rows, columns})) return std::nullopt;
  return fmt::format(
      "scales are {}{}, but a weight of {} × {} in {}x{} blocks has ceil({}/{}) × ceil({}/{}) = {} × {}",
      shape_text(grid), explain_grid(m, grid), m.out, m.in, block.rows, block.columns, m.out, block.rows,
      m.in, block.columns, rows, columns);
}

// weight_scale: per tensor, per row, per group along rows, or per block; the name is the same for all.
bool any_weight_scale_fits(const Matrix& m, const Shape& grid, const Block& block, std::uint64_t group) {
  if (grid.empty() || equals(grid, {}, {1}) || equals(grid, m.leading, {1})) return true;
  if (equals(grid, m.leading, {m.out})) return true;
  for (const std::uint64_t columns :
       {std::uint64_t{1}, group == 0 ? 1 : ceil_div(m.in, group), ceil_div(m.in, 16), ceil_div(m.in, 32)}) {
    if (equals(grid, m.leading, {m.out, columns}) || equals(grid, m.leading, {columns, m.out})) return true;
  }
  return !block_grid_fault(m, grid, block) || equals(grid, m.leading, {1, 1});
}

// GPTQ, AWQ: a row a group of inputs. MLX, gpt-oss: a column a group.
bool any_group_scale_fits(const Matrix& m, const Shape& grid, std::uint64_t group) {
  for (const std::uint64_t g : {group, std::uint64_t{32}, std::uint64_t{64}, std::uint64_t{128}, m.in}) {
    if (g == 0) continue;
    const std::uint64_t groups = ceil_div(m.in, g);
    if (equals(grid, m.leading, {groups, m.out}) || equals(grid, m.leading, {m.out, groups})) return true;
  }
  return false;
}

}  // namespace

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

bool needs_scale(ElementType type) {
  switch (type) {
    case ElementType::F4:
    case ElementType::U8:
    case ElementType::I8:
    case ElementType::F8_E5M2:
    case ElementType::F8_E4M3:
    case ElementType::F8_E4M3FNUZ:
    case ElementType::F8_E5M2FNUZ:
    case ElementType::I32:
    case ElementType::U32: return true;
    default: return false;
  }
}

bool is_plain_float(ElementType type) {
  return type == ElementType::BF16 || type == ElementType::F16 || type == ElementType::F32 ||
         type == ElementType::F64;
}

bool codes_fit(const TensorSpec& spec, const CheckpointTensor& stored) {
  const Matrix m = as_matrix(spec);
  const std::uint64_t word =
      std::uint64_t{8} * info(stored.type).block_bytes / info(stored.type).block_elements;
  if (spec.shape.size() < 2) return false;
  for (const std::uint64_t bits : {4, 8, 2, 3, 6, 5, 1}) {
    if (bits > word && word >= 8) continue;
    const std::uint64_t in = words(m.in, bits, word), out = words(m.out, bits, word);
    if (equals(stored.shape, m.leading, {m.out, in})) return true;  // compressed-tensors, ModelOpt, MLX
    if (equals(stored.shape, m.leading, {in, m.out})) return true;  // GPTQ
    if (equals(stored.shape, m.leading, {m.in, out})) return true;  // AWQ
    if (equals(stored.shape, {}, {words(spec.elements.value(), bits, word), 1})) return true;  // bitsandbytes
  }
  // gpt-oss: blocks of 32 inputs, 16 bytes each
  return m.in % 32 == 0 && equals(stored.shape, m.leading, {m.out, m.in / 32, 16});
}

std::optional<std::string> scale_grid_fault(const TensorSpec& spec, const CheckpointTensor& scale,
                                            std::string_view suffix,
                                            const std::optional<QuantizationConfig>& quantization) {
  const Matrix m = as_matrix(spec);
  if (spec.shape.size() < 2) return "a scale for what is no matrix";
  const Block block = configured_block(quantization);
  if (suffix == "weight_scale_inv") return block_grid_fault(m, scale.shape, block);
  const std::uint64_t group = configured_group(quantization);
  bool fits = true;
  if (suffix == "weight_scale" || suffix == "scale")
    fits = any_weight_scale_fits(m, scale.shape, block, group);
  else if (suffix == "scales" || suffix == "proj_scales")
    fits = any_group_scale_fits(m, scale.shape, group);
  if (fits) return std::nullopt;
  return fmt::format("scales are {}{}, which is no grid over a weight of {} × {}", shape_text(scale.shape),
                     explain_grid(m, scale.shape), m.out, m.in);
}

}  // namespace assay
