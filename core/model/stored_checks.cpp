#include "core/model/stored_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/model/scale_grid.h"
#include "core/numeric/ceil_div.h"

namespace assay {
namespace {

using Shape = std::vector<std::uint64_t>;

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

// " (the grid of 64x64 blocks)", when one of the usual blocks explains it.
std::string explain_grid(const Matrix& m, const Shape& grid) {
  for (const std::uint64_t block : {256, 128, 64, 32, 16}) {
    if (equals(grid, m.leading, {ceil_div(m.out, block), ceil_div(m.in, block)}))
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

std::string describe_wanted(const Matrix& m, const std::optional<QuantizationConfig>& quantization) {
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

// What an FP8 or INT8 weight keeps its scales under.
constexpr std::array<std::string_view, 7> kGrids = {
    "weight_scale_inv",  "weight_scale",   "scale",     "proj_weight_scale_inv",
    "proj_weight_scale", "proj_scale_inv", "proj_scale"};

// torchao's INT4: tiles of eight rows and 32 lanes; rows and columns are padded.
bool holds_in_tiles(const Matrix& m, const Shape& shape) {
  return m.leading.empty() && shape.size() == 4 && shape[2] == 32 && shape[0] == ceil_div(m.out, 8) &&
         shape[3] != 0 && shape[3] <= 4 && shape[1] >= ceil_div(m.in, 32 * shape[3]);
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
  if (holds_in_tiles(m, stored.shape)) return true;
  // gpt-oss: blocks of 32 inputs, 16 bytes each
  return m.in % 32 == 0 && equals(stored.shape, m.leading, {m.out, m.in / 32, 16});
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
  if (std::find(kGrids.begin(), kGrids.end(), suffix) == kGrids.end()) return std::nullopt;
  if (!one_code_an_element(codes, scale) || block_over(spec, codes, scale, quantization)) return std::nullopt;
  if (is_scale_of_parts(scale) && fuses_three(spec) && !configured_block(quantization)) return std::nullopt;
  const Matrix m = as_matrix(spec);
  return fmt::format("scales are {}{}{}", shape_text(scale.shape), explain_grid(m, scale.shape),
                     describe_wanted(m, quantization));
}

std::optional<std::string> undeclared_blocks(const TensorSpec& spec, const CheckpointTensor* codes,
                                             const CheckpointTensor& scale,
                                             const std::optional<QuantizationConfig>& quantization) {
  if (codes == nullptr || !one_code_an_element(codes, scale)) return std::nullopt;
  const auto block = block_over(spec, codes, scale, quantization);
  if (!block || !needs_a_block_size(*block, quantization)) return std::nullopt;
  return fmt::format(
      "scales are the grid of {0}x{0} blocks, a size that config.json does not name: loaders take "
      "128x128",
      block->rows);
}

}  // namespace assay
