// The stored forms of one float or 8-bit code an element: FP8, INT8, and FP4 two to a byte.
#include <fmt/format.h>

#include "core/model/stored_checks.h"
#include "core/model/stored_resolve.h"

namespace assay {
namespace {

void resolve_scaled(StoredResolution& resolution, LogicalTensor& tensor) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const CheckpointTensor& scale = resolution.stored(*tensor.scale);
  if (tensor.global_scale) return resolution.unknown_form(tensor);
  tensor.form.kind = FormKind::scaled;
  tensor.form.codes = codes.type;
  if (!resolution.take_scale_type(tensor)) return;
  const auto block = scale_block(as_matrices(codes.shape), scale, resolution.quantization());
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

// bitsandbytes' LLM.int8: SCB is a row's largest magnitude, in place of 127.
void resolve_row_maxima(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (const auto format = group.place("weight_format")) tensor.companions.push_back(*format);
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.find("SCB")->place;
  const bool is_int8 = codes.type == ElementType::I8 && codes.shape.size() == 2 &&
                       resolution.stored(*tensor.scale).shape == StoredShape{codes.shape.front()} &&
                       group.pieces.size() == 1 + tensor.companions.size();
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
  for (const std::string_view suffix : {"weight_scale_inv", "weight_scale", "scale", "proj_weight_scale_inv",
                                        "proj_weight_scale", "proj_scale_inv", "proj_scale"}) {
    if (!tensor.scale) tensor.scale = group.place(suffix);
  }
  for (const std::string_view suffix : {"weight_scale_2", "proj_weight_scale_2"}) {
    if (!tensor.global_scale) tensor.global_scale = group.place(suffix);
  }
  const std::size_t known = tensor.companions.size() + (tensor.scale ? 1 : 0) + (tensor.global_scale ? 1 : 0);
  if (known != group.pieces.size()) return resolution.unknown_form(tensor);
  if (!tensor.scale) return resolve_unscaled(resolution, tensor);

  if (tensor.global_scale) tensor.form.global = GlobalScale::multiply;
  const CheckpointTensor& scale = resolution.stored(*tensor.scale);
  if (is_one_byte_float(codes.type) || (codes.type == ElementType::I8 && !packs_two(codes, scale)))
    return resolve_scaled(resolution, tensor);
  if (codes.type == ElementType::U8 || codes.type == ElementType::I8 || codes.type == ElementType::F4)
    return resolve_fp4(resolution, tensor);
  resolution.fault("stored.scale_without_codes", scale.name,
                   fmt::format("a scale for {}, which is {} and needs none", codes.name, name(codes.type)));
}

// A scale every 16 (NVFP4) or 32 (MXFP4) elements.
void resolve_packed_fp4(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  tensor.scale = group.place("weight_scale");
  tensor.global_scale = group.place("weight_global_scale");
  if (tensor.global_scale) tensor.form.global = GlobalScale::divide;
  const std::size_t known = 2 + tensor.companions.size() + (tensor.global_scale ? 1 : 0);
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
