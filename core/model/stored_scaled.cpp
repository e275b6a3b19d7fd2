// The stored forms of one float or 8-bit code an element: FP8, INT8, and FP4 two to a byte.
#include <fmt/format.h>

#include <numeric>

#include "core/model/composed_tensor.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_resolve.h"

namespace assay {
namespace {

// Query, keys and values in one matrix, with a scale each: blocks are as large as divides them all.
void resolve_parts(StoredResolution& resolution, LogicalTensor& tensor) {
  const CheckpointTensor &codes = resolution.stored(tensor.codes), &scale = resolution.stored(*tensor.scale);
  const MatrixSizes sizes = as_matrices(codes.shape);
  const bool one_size = configured_block(resolution.quantization()).has_value();
  if (one_size || sizes.columns == 0 || !is_scale_of_parts(scale))
    return resolution.bad_grid(tensor, codes.shape);
  const auto rows = fused_rows(sizes, scale, resolution.attention());
  if (rows.empty())
    return resolution.unknown_form(
        tensor,
        fmt::format("{} are scales of query, keys and values, and the heads of config.json do not make up "
                    "{} rows",
                    scale.name, sizes.rows));
  tensor.form.block_rows = std::gcd(rows[0], std::gcd(rows[1], rows[2]));
  tensor.form.block_columns = sizes.columns;
  FormDetails details;
  for (const std::uint64_t part : rows) details.parts.push_back(part / tensor.form.block_rows);
  set_details(tensor, std::move(details));
  resolution.finish(tensor, codes.shape);
}

}  // namespace

void resolve_scaled(StoredResolution& resolution, LogicalTensor& tensor) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const CheckpointTensor& scale = resolution.stored(*tensor.scale);
  if (tensor.global_scale) return resolution.unknown_form(tensor);
  tensor.form.kind = FormKind::scaled;
  tensor.form.codes = codes.type;
  if (!resolution.take_scale_type(tensor)) return;
  const auto block = scale_block(as_matrices(codes.shape), scale, resolution.quantization());
  if (!block) return resolve_parts(resolution, tensor);
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

namespace {

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
  const bool transposed = group.find("proj_blocks") != nullptr;
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place(transposed ? "proj_scales" : "weight.scales");
  if (!tensor.scale || group.pieces.size() != 2 || codes.type != ElementType::U8 || codes.shape.size() < 3 ||
      codes.shape.back() != 16)
    return resolution.unknown_form(tensor);
  tensor.form = {.kind = FormKind::fp4, .codes = ElementType::F4};
  (transposed ? tensor.form.block_rows : tensor.form.block_columns) = 32;
  tensor.form.transposed = transposed;
  if (!resolution.take_scale_type(tensor)) return;
  StoredShape shape(codes.shape.begin(), codes.shape.end() - 1);
  const bool fits =
      resolution.stored(*tensor.scale).shape == shape && tensor.form.scales == ElementType::F8_E8M0;
  if (!fits) return resolution.bad_grid(tensor, shape);
  if (__builtin_mul_overflow(shape.back(), 32, &shape.back())) return resolution.unknown_form(tensor);
  if (transposed) {
    if (shape.size() < 3) return resolution.unknown_form(tensor);
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  }
  resolution.finish(tensor, shape);
}

}  // namespace assay
