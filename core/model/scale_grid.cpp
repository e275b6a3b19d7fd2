#include "core/model/scale_grid.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/model/module_tree.h"
#include "core/numeric/ceil_div.h"

namespace assay {
namespace {

constexpr std::uint64_t kUsualSides[] = {128, 64, 32, 256, 16};

bool fuses_two(std::string_view scale) {
  return scale.find("gate_up") != std::string_view::npos || scale.find("w13") != std::string_view::npos;
}

// Query, keys and values one under the other. Not `query_key_value`, which Falcon, GPT-NeoX and BLOOM
// interleave head by head.
bool fuses_attention(std::string_view scale) {
  constexpr std::array<std::string_view, 3> kNames = {".qkv_proj.", ".Wqkv.", ".W_pack."};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return scale.find(name) != std::string_view::npos; });
}

constexpr std::uint64_t kWholeRow = UINT64_MAX;

// The sizes of groups that a config allows; empty where it does not say of all.
std::vector<std::uint64_t> configured_groups(const std::optional<QuantizationConfig>& quantization) {
  if (const auto one = configured_group(quantization)) return {*one};
  std::vector<std::uint64_t> sizes;
  if (!quantization) return sizes;
  for (const auto& group : quantization->groups) {
    if (!group.group_size && group.strategy != "channel") return {};
    sizes.push_back(group.group_size.value_or(kWholeRow));
  }
  return sizes;
}

}  // namespace

MatrixSizes as_matrices(const StoredShape& shape) {
  MatrixSizes sizes;
  if (!shape.empty()) sizes.columns = shape.back();
  if (shape.size() >= 2) sizes.rows = shape[shape.size() - 2];
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) sizes.slices *= shape[i];
  return sizes;
}

bool WeightMatrix::stacks(const StoredShape& shape, std::initializer_list<std::uint64_t> rest) const {
  if (shape.size() != leading.size() + rest.size()) return false;
  return std::equal(leading.begin(), leading.end(), shape.begin()) &&
         std::equal(rest.begin(), rest.end(), shape.begin() + static_cast<std::ptrdiff_t>(leading.size()));
}

WeightMatrix weight_matrix(const TensorSpec& spec) {
  WeightMatrix m;
  m.elements = spec.elements.value();
  if (spec.shape.size() < 2) return m;
  m.leading.assign(spec.shape.begin(), spec.shape.end() - 2);
  m.out = spec.shape[spec.shape.size() - 2];
  m.in = spec.shape.back();
  if (spec.input_major) std::swap(m.out, m.in);
  return m;
}

std::optional<ScaleBlock> configured_block(const std::optional<QuantizationConfig>& quantization) {
  if (!quantization) return std::nullopt;
  if (quantization->block_rows && quantization->block_columns)
    return ScaleBlock{*quantization->block_rows, *quantization->block_columns};
  for (const auto& group : quantization->groups) {
    if (group.block_rows && group.block_columns) return ScaleBlock{*group.block_rows, *group.block_columns};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> configured_group(const std::optional<QuantizationConfig>& quantization) {
  if (!quantization) return std::nullopt;
  if (quantization->group_size) return quantization->group_size;
  return quantization->groups.size() == 1 ? quantization->groups.front().group_size : std::nullopt;
}

std::optional<ScaleBlock> scale_block(const MatrixSizes& weight, const CheckpointTensor& scale,
                                      const std::optional<QuantizationConfig>& quantization) {
  const StoredShape& grid = scale.shape;
  const std::optional<ScaleBlock> configured = configured_block(quantization);
  const bool one_size = quantization && quantization->block_rows;
  const auto is_grid_of = [&](const ScaleBlock& block) {
    const MatrixSizes g = as_matrices(grid);
    return grid.size() >= 2 && g.slices == weight.slices && g.rows == ceil_div(weight.rows, block.rows) &&
           g.columns == ceil_div(weight.columns, block.columns);
  };
  if (weight.rows == 0 || weight.columns == 0) {
    const ScaleBlock block = configured.value_or(ScaleBlock{128, 128});
    return is_grid_of(block) ? std::optional(block) : std::nullopt;
  }
  const bool powers_of_two = scale.type == ElementType::U8 || scale.type == ElementType::F8_E8M0;
  if (powers_of_two && is_grid_of({1, 32})) return ScaleBlock{1, 32};  // MXFP8
  // First, since a small matrix of one block would also pass for "one scale a tensor".
  if (configured && is_grid_of(*configured)) return configured;
  if (one_size && scale.name.ends_with("_scale_inv")) return std::nullopt;
  if (element_count(grid) == weight.slices) return ScaleBlock{weight.rows, weight.columns};
  if (is_grid_of({1, weight.columns}) || (weight.slices == 1 && grid == StoredShape{weight.rows}))
    return ScaleBlock{1, weight.columns};
  // Two matrices in one, a scale each: gate and up of experts that vLLM or SGLang stacked
  if (fuses_two(scale.name) && weight.rows % 2 == 0 && element_count(grid) == 2 * weight.slices && !one_size)
    return ScaleBlock{weight.rows / 2, weight.columns};
  // Stacked experts stored [inputs, outputs]: Llama 4
  if (weight.slices > 1 && is_grid_of({weight.rows, 1})) return ScaleBlock{weight.rows, 1};
  if (one_size) return std::nullopt;
  for (const std::uint64_t side : kUsualSides) {
    if (is_grid_of({side, side})) return ScaleBlock{side, side};
  }
  return std::nullopt;
}

bool is_scale_of_parts(const CheckpointTensor& scale) {
  constexpr std::uint64_t kParts = 3;
  return element_count(scale.shape) == kParts && fuses_attention(scale.name);
}

std::vector<std::uint64_t> fused_rows(const MatrixSizes& weight, const CheckpointTensor& scale,
                                      const std::optional<AttentionSizes>& attention) {
  if (!attention || weight.slices != 1 || !is_scale_of_parts(scale)) return {};
  const std::uint64_t query = attention->heads * attention->head_size;
  const std::uint64_t keys = attention->kv_heads * attention->head_size;
  if (query + 2 * keys != weight.rows) return {};
  return {query, keys, keys};
}

bool needs_a_block_size(const ScaleBlock& block, const std::optional<QuantizationConfig>& quantization) {
  const bool square = block.rows == block.columns && block.rows > 1 && block.rows != 128;
  for (const std::uint64_t side : kUsualSides) {
    if (square && block.rows == side) return !configured_block(quantization);
  }
  return false;
}

std::optional<std::uint64_t> group_columns(std::uint64_t columns, std::uint64_t groups,
                                           const std::optional<QuantizationConfig>& quantization) {
  if (groups == 0 || columns == 0) return std::nullopt;
  bool says = false;
  for (const std::uint64_t size : configured_groups(quantization)) {
    if (size == 0) continue;
    if (ceil_div(columns, size) == groups) return groups == 1 ? columns : size;
    says = true;
  }
  if (says && quantization->modules.empty()) return std::nullopt;
  if (columns % groups != 0) return std::nullopt;
  return columns / groups;
}

}  // namespace assay
