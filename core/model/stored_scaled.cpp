// The stored forms of one float or 8-bit code an element: FP8, INT8, and FP4 two to a byte.
#include <fmt/format.h>

#include "core/model/stored_checks.h"
#include "core/model/stored_resolve.h"

namespace assay {
namespace {

using Block = StoredResolution::Block;

bool is_one_byte_float(ElementType type) {
  switch (type) {
    case ElementType::F8_E4M3:
    case ElementType::F8_E5M2:
    case ElementType::F8_E4M3FNUZ:
    case ElementType::F8_E5M2FNUZ: return true;
    default: return false;
  }
}

// DeepSeek-V4 keeps two E2M1 codes in an I8, a power of two for every 32: told from INT8 by the scale.
bool packs_two(const CheckpointTensor& codes, const CheckpointTensor& scale) {
  return scale.type == ElementType::F8_E8M0 && !codes.shape.empty() &&
         scale.shape.size() == codes.shape.size() &&
         scale.shape.back() == LogicalTensor::ceil_div(codes.shape.back(), 16);
}

bool fuses_two(std::string_view scale) {
  return scale.find("gate_up") != std::string_view::npos || scale.find("w13") != std::string_view::npos;
}

// The configured block first, since a small matrix of one block would also pass for "one scale a tensor".
// Where config.json gives one size for all, a grid of other blocks is no grid at all, and …_scale_inv no
// other.
std::optional<Block> find_block(const StoredResolution& resolution, const MatrixSizes& m,
                                const CheckpointTensor& scale) {
  const StoredShape& grid = scale.shape;
  const std::optional<Block> configured = resolution.configured_block();
  const bool one_size = resolution.quantization() && resolution.quantization()->block_rows;
  const auto is_grid_of = [&](const Block& block) {
    const MatrixSizes g = as_matrices(grid);
    return grid.size() >= 2 && g.slices == m.slices &&
           g.rows == LogicalTensor::ceil_div(m.rows, block.rows) &&
           g.columns == LogicalTensor::ceil_div(m.columns, block.columns);
  };
  if (m.rows == 0 || m.columns == 0) {
    const Block block = configured.value_or(Block{128, 128});
    return is_grid_of(block) ? std::optional(block) : std::nullopt;
  }
  const bool powers_of_two = scale.type == ElementType::U8 || scale.type == ElementType::F8_E8M0;
  if (powers_of_two && is_grid_of({1, 32})) return Block{1, 32};  // MXFP8
  if (configured && is_grid_of(*configured)) return configured;
  if (one_size && scale.name.ends_with("_scale_inv")) return std::nullopt;
  if (element_count(grid) == m.slices) return Block{m.rows, m.columns};
  if (is_grid_of({1, m.columns}) || (m.slices == 1 && grid == StoredShape{m.rows}))
    return Block{1, m.columns};
  // Two matrices in one, a scale each: gate and up of experts that vLLM or SGLang stacked
  if (fuses_two(scale.name) && m.rows % 2 == 0 && element_count(grid) == 2 * m.slices && !one_size)
    return Block{m.rows / 2, m.columns};
  // Stacked experts stored [inputs, outputs]: Llama 4
  if (m.slices > 1 && is_grid_of({m.rows, 1})) return Block{m.rows, 1};
  if (one_size) return std::nullopt;
  for (const std::uint64_t side : {128, 64, 32, 256, 16}) {
    if (is_grid_of({side, side})) return Block{side, side};
  }
  return std::nullopt;
}

void resolve_scaled(StoredResolution& resolution, LogicalTensor& tensor) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const CheckpointTensor& scale = resolution.stored(*tensor.scale);
  if (tensor.global_scale) return resolution.unknown_form(tensor);
  tensor.form.kind = FormKind::scaled;
  tensor.form.codes = codes.type;
  if (!resolution.take_scale_type(tensor)) return;
  const auto block = find_block(resolution, as_matrices(codes.shape), scale);
  if (!block) return resolution.bad_grid(tensor, codes.shape);
  tensor.form.block_rows = block->rows;
  tensor.form.block_columns = block->columns;
  resolution.finish(tensor, codes.shape);
}

void resolve_fp4(StoredResolution& resolution, LogicalTensor& tensor) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.form.kind = FormKind::fp4;
  tensor.form.codes = ElementType::F4;
  if (!resolution.take_scale_type(tensor)) return;
  StoredShape shape = codes.shape;
  if (shape.size() < 2) return resolution.unknown_form(tensor);
  if (codes.type != ElementType::F4 && __builtin_mul_overflow(shape.back(), 2, &shape.back()))
    return resolution.unknown_form(tensor);
  const std::uint64_t group = tensor.form.scales == ElementType::F8_E8M0 ? 32 : 16;
  StoredShape grid = shape;
  grid.back() = LogicalTensor::ceil_div(shape.back(), group);
  if (resolution.stored(*tensor.scale).shape != grid) return resolution.bad_grid(tensor, shape);
  if (tensor.global_scale) {
    const CheckpointTensor& global = resolution.stored(*tensor.global_scale);
    if (element_count(global.shape) != 1 || global.type != ElementType::F32)
      return resolution.unknown_form(tensor);
  }
  tensor.form.block_columns = group;
  resolution.finish(tensor, shape);
}

// U8 [rows/2, columns] under floats [rows, groups]; FP4 would have scales of 8 bits.
bool pairs_rows(const CheckpointTensor& codes, const CheckpointTensor& scale) {
  return codes.type == ElementType::U8 && is_plain_float(scale.type) && codes.shape.size() >= 2 &&
         codes.shape.size() == scale.shape.size() &&
         as_matrices(codes.shape).slices == as_matrices(scale.shape).slices &&
         as_matrices(scale.shape).rows / 2 == as_matrices(codes.shape).rows &&
         as_matrices(scale.shape).rows % 2 == 0;
}

// ModelOpt's INT4, W4A16 and W4A8 (whose weight_scale_2 is for the FP8 that the kernel makes of it on the
// way).
void resolve_paired_rows(StoredResolution& resolution, LogicalTensor& tensor) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const MatrixSizes grid = as_matrices(resolution.stored(*tensor.scale).shape);
  if (tensor.global_scale) tensor.companions.push_back(*tensor.global_scale);
  tensor.global_scale.reset();
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  tensor.form.packed.codes = {4, IntPacking::Fill::dense};
  tensor.form.packed.paired_rows = true;
  if (!resolution.take_scale_type(tensor)) return;
  StoredShape shape = codes.shape;
  shape[shape.size() - 2] = grid.rows;
  if (grid.columns == 0 || shape.back() == 0 || shape.back() % grid.columns != 0)
    return resolution.bad_grid(tensor, shape);
  tensor.form.block_columns = shape.back() / grid.columns;
  resolution.finish(tensor, shape);
}

// bitsandbytes' LLM.int8: SCB is a row's largest magnitude, in place of 127.
void resolve_row_maxima(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (const auto format = group.place("weight_format")) tensor.companions.push_back(*format);
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.find("SCB")->place;
  const bool is_int8 = codes.type == ElementType::I8 && codes.shape.size() == 2 &&
                       resolution.stored(*tensor.scale).shape == StoredShape{codes.shape.front()} &&
                       group.pieces.size() == 1 + known_beside(tensor);
  if (!is_int8) return resolution.unknown_form(tensor);
  tensor.form.scale_factor = 1.0F / 127;
  resolve_scaled(resolution, tensor);
}

void resolve_unscaled(StoredResolution& resolution, LogicalTensor& tensor) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  if (is_one_byte_float(codes.type)) {
    resolution.fault("stored.scale_missing", codes.name,
                     fmt::format("{} codes without a scale", name(codes.type)),
                     "complete the checkpoint: without scales these are not the weights");
  } else if (needs_scale(codes.type) && codes.shape.size() >= 2 &&
             (codes.name.ends_with("weight") || codes.name.ends_with("experts.gate_up_proj") ||
              codes.name.ends_with("experts.down_proj"))) {
    resolution.fault(
        "stored.scale_missing", codes.name,
        fmt::format("{} {} called a weight, without a scale", name(codes.type), shape_text(codes.shape)));
  } else {
    tensor.form = {.kind = FormKind::plain, .codes = codes.type};
    resolution.finish(tensor, codes.shape);
  }
}

}  // namespace

void resolve_weight(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (group.find("SCB") != nullptr) return resolve_row_maxima(resolution, tensor, group);
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  for (const std::string_view suffix :
       {"weight_scale_inv", "weight_scale", "scale", "proj_weight_scale_inv", "proj_weight_scale",
        "proj_scale_inv", "proj_scale", "qscale_weight"}) {
    if (!tensor.scale) tensor.scale = group.place(suffix);
  }
  for (const std::string_view suffix : {"weight_scale_2", "proj_weight_scale_2"}) {
    if (!tensor.global_scale) tensor.global_scale = group.place(suffix);
  }
  const std::size_t known = known_beside(tensor) + (tensor.scale ? 1 : 0) + (tensor.global_scale ? 1 : 0);
  if (known != group.pieces.size()) return resolution.unknown_form(tensor);
  if (!tensor.scale) return resolve_unscaled(resolution, tensor);

  if (tensor.global_scale) tensor.form.global = GlobalScale::multiply;
  const CheckpointTensor& scale = resolution.stored(*tensor.scale);
  if (is_one_byte_float(codes.type) || (codes.type == ElementType::I8 && !packs_two(codes, scale)))
    return resolve_scaled(resolution, tensor);
  if (pairs_rows(codes, scale)) return resolve_paired_rows(resolution, tensor);
  if (codes.type == ElementType::U8 || codes.type == ElementType::I8 || codes.type == ElementType::F4)
    return resolve_fp4(resolution, tensor);
  resolution.fault("stored.scale_without_codes", scale.name,
                   fmt::format("a scale for {}, which is {} and needs none", codes.name, name(codes.type)));
}

// Float8Tensor and Int8Tensor: qdata and its scale, one a row or in all. What has a zero point, and what is
// packed for one kind of kernel, is refused.
void resolve_torchao(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  tensor.scale = group.place("_weight_scale");
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const bool known = tensor.scale && group.pieces.size() == 2 + known_beside(tensor) &&
                     (is_one_byte_float(codes.type) || codes.type == ElementType::I8);
  if (!known)
    return resolution.unknown_form(tensor, "of torchao's tensors, Float8Tensor and Int8Tensor are read");
  resolve_scaled(resolution, tensor);
}

// weight U32, scales U8: words of eight E2M1 codes (mxfp4: a power of two for 32, nvfp4: E4M3 for 16) or of
// four E4M3 codes (mxfp8). Words a scale tell which.
void resolve_mlx_float(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place("scales");
  const CheckpointTensor& scale = resolution.stored(*tensor.scale);
  if (codes.type != ElementType::U32 || scale.type != ElementType::U8 || codes.shape.size() < 2 ||
      codes.shape.size() != scale.shape.size() || group.pieces.size() != 1 + known_beside(tensor) ||
      scale.shape.back() == 0 || codes.shape.back() % scale.shape.back() != 0)
    return resolution.unknown_form(tensor, "scales without biases belong to MLX's mxfp4, nvfp4 and mxfp8");
  const std::uint64_t words = codes.shape.back() / scale.shape.back();
  const bool eight_bits = words == 8;
  if (words != 2 && words != 4 && !eight_bits) return resolution.bad_grid(tensor, codes.shape);
  tensor.form = {.kind = eight_bits ? FormKind::scaled : FormKind::fp4,
                 .codes = eight_bits ? ElementType::F8_E4M3 : ElementType::F4,
                 .scales = words == 2 ? ElementType::F8_E4M3 : ElementType::F8_E8M0};
  tensor.form.block_columns = words == 2 ? 16 : 32;
  StoredShape shape = codes.shape;
  if (__builtin_mul_overflow(scale.shape.back(), tensor.form.block_columns, &shape.back()))
    return resolution.unknown_form(tensor);
  StoredShape grid = shape;
  grid.back() = scale.shape.back();
  if (grid != scale.shape) return resolution.bad_grid(tensor, shape);
  resolution.finish(tensor, shape);
}

// A scale every 16 (NVFP4) or 32 (MXFP4) elements.
void resolve_packed_fp4(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  tensor.scale = group.place("weight_scale");
  tensor.global_scale = group.place("weight_global_scale");
  if (tensor.global_scale) tensor.form.global = GlobalScale::divide;
  const std::size_t known = 2 + known_beside(tensor) + (tensor.global_scale ? 1 : 0);
  if (!tensor.scale || known != group.pieces.size()) return resolution.unknown_form(tensor);
  resolve_fp4(resolution, tensor);
}

// Blocks [E, R, C/32, 16], scales [E, R, C/32]. The original release (mlp1_weight.blocks) means the matrix
// [E, R, C]; transformers (gate_up_proj_blocks) multiplies from the right, so that its unquantized parameter
// is [E, C, R].
void resolve_gpt_oss(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const bool turned = group.find("proj_blocks") != nullptr;
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place(turned ? "proj_scales" : "weight.scales");
  if (!tensor.scale || group.pieces.size() != 2 || codes.type != ElementType::U8 || codes.shape.size() < 3 ||
      codes.shape.back() != 16)
    return resolution.unknown_form(tensor);
  tensor.form = {.kind = FormKind::fp4, .codes = ElementType::F4};
  (turned ? tensor.form.block_rows : tensor.form.block_columns) = 32;
  tensor.form.transposed = turned;
  if (!resolution.take_scale_type(tensor)) return;
  StoredShape shape(codes.shape.begin(), codes.shape.end() - 1);
  const bool fits =
      resolution.stored(*tensor.scale).shape == shape && tensor.form.scales == ElementType::F8_E8M0;
  if (!fits) return resolution.bad_grid(tensor, shape);
  if (__builtin_mul_overflow(shape.back(), 32, &shape.back())) return resolution.unknown_form(tensor);
  if (turned) {
    if (shape.size() < 3) return resolution.unknown_form(tensor);
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  }
  resolution.finish(tensor, shape);
}

}  // namespace assay
