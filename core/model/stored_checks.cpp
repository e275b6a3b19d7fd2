#include "core/model/stored_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/model/scale_grid.h"
#include "core/numeric/ceil_div.h"

namespace assay {
namespace {

// " (the grid of 64x64 blocks)", when one of the usual blocks explains it.
std::string explain_grid(const WeightMatrix& m, const StoredShape& grid) {
  for (const std::uint64_t block : {256, 128, 64, 32, 16}) {
    if (m.stacks(grid, {ceil_div(m.out, block), ceil_div(m.in, block)}))
      return fmt::format(" (the grid of {0}x{0} blocks)", block);
  }
  return {};
}

bool one_code_an_element(const CheckpointTensor* codes, const CheckpointTensor& scale) {
  if (codes == nullptr) return true;
  return is_one_byte_float(codes->type) || (codes->type == ElementType::I8 && !packs_two(*codes, scale));
}

// As the codes are stored, whatever order the arithmetic has.
std::optional<ScaleBlock> block_over(const TensorSpec& spec, const CheckpointTensor* codes,
                                     const CheckpointTensor& scale,
                                     const std::optional<QuantizationConfig>& quantization) {
  return scale_block(as_matrices(codes == nullptr ? spec.shape : codes->shape), scale, quantization);
}

std::string describe_wanted(const WeightMatrix& m, const std::optional<QuantizationConfig>& quantization) {
  if (const auto block = configured_block(quantization)) {
    return fmt::format(", but a weight of {} × {} in {}x{} blocks has ceil({}/{}) × ceil({}/{}) = {} × {}",
                       m.out, m.in, block->rows, block->columns, m.out, block->rows, m.in, block->columns,
                       ceil_div(m.out, block->rows), ceil_div(m.in, block->columns));
  }
  return fmt::format(", which is no grid over a weight of {} × {}", m.out, m.in);
}

// Query, keys and values, one under the other.
bool fuses_three(const TensorSpec& spec) {
  return spec.parallel.members.size() == 3 && !spec.parallel.interleaved && spec.parallel.dimension == 0;
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

bool is_one_byte_float(ElementType type) {
  switch (type) {
    case ElementType::F8_E4M3:
    case ElementType::F8_E5M2:
    case ElementType::F8_E4M3FNUZ:
    case ElementType::F8_E5M2FNUZ: return true;
    default: return false;
  }
}

bool packs_two(const CheckpointTensor& codes, const CheckpointTensor& scale) {
  return scale.type == ElementType::F8_E8M0 && !codes.shape.empty() &&
         scale.shape.size() == codes.shape.size() && scale.shape.back() == ceil_div(codes.shape.back(), 16);
}

std::optional<std::string> scale_grid_fault(const TensorSpec& spec, const CheckpointTensor* codes,
                                            const CheckpointTensor& scale, std::string_view suffix,
                                            const std::optional<QuantizationConfig>& quantization) {
  if (std::find(kWeightScales.begin(), kWeightScales.end(), suffix) == kWeightScales.end())
    return std::nullopt;
  if (!one_code_an_element(codes, scale)) return std::nullopt;
  if (codes != nullptr && element_count(codes->shape) != spec.elements.value())
    return fmt::format("scales {} codes {}, one an element, where the config asks for {}", name(codes->type),
                       shape_text(codes->shape), shape_text(spec.shape));
  if (block_over(spec, codes, scale, quantization)) return std::nullopt;
  if (is_scale_of_parts(scale) && fuses_three(spec) && !configured_block(quantization)) return std::nullopt;
  const WeightMatrix m = weight_matrix(spec);
  return fmt::format("scales are {}{}{}", shape_text(scale.shape), explain_grid(m, scale.shape),
                     describe_wanted(m, quantization));
}

std::optional<std::string> undeclared_blocks(const TensorSpec& spec, const CheckpointTensor* codes,
                                             const CheckpointTensor& scale,
                                             const std::optional<QuantizationConfig>& quantization) {
  if (codes == nullptr || !one_code_an_element(codes, scale)) return std::nullopt;
  const auto block = block_over(spec, codes, scale, quantization);
  // A number for the tensor, whose shape happens to be that of a usual block.
  if (element_count(scale.shape) == as_matrices(codes->shape).slices && !scale.name.ends_with("_scale_inv"))
    return std::nullopt;
  if (!block || !needs_a_block_size(*block, quantization)) return std::nullopt;
  return fmt::format(
      "scales are the grid of {0}x{0} blocks, a size that config.json does not name: loaders take "
      "128x128",
      block->rows);
}

}  // namespace assay
