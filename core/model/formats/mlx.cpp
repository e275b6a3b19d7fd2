// MLX: integers in `weight` beside `scales` and `biases`; or small floats beside `scales` alone.
#include <fmt/format.h>

#include "core/model/formats/all.h"
#include "core/model/formats/words.h"
#include "core/model/stored_checks.h"

namespace assay::formats {
namespace {

// `.scales` is GPTQ's, too.
constexpr NameEnding kMlxEndings[] = {
    {".biases", ".weight", StoredPart::zero_point, NameEnding::Belief::beside_a_weight}};

bool claims_mlx(const StoredResolution&, const LogicalTensor&, const StoredGroup& group) {
  return group.plain && (group.find("biases") != nullptr || group.find("scales") != nullptr);
}

// weight U32 [out, words], scales and biases [out, groups]; stacked experts in front.
void resolve_mlx_int(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place("scales");
  tensor.zeros = group.place("biases");
  const std::size_t known = 1 + known_beside(tensor) + (tensor.scale ? 1 : 0);
  if (!tensor.scale || known != group.pieces.size() || !is_word(codes.type) || codes.shape.size() < 2)
    return resolution.unknown_form(tensor);
  const CheckpointTensor &scale = resolution.stored(*tensor.scale), &bias = resolution.stored(*tensor.zeros);
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  tensor.form.packed.zero = ZeroPoint::bias;
  if (!resolution.take_scale_type(tensor)) return;
  if (scale.shape != bias.shape || scale.type != bias.type || !same_but_last(scale.shape, codes.shape))
    return resolution.bad_grid(tensor, codes.shape);
  // Nothing in the tensors says how long a row is; the config has one group size, and others for some
  // modules.
  auto bits = configured_bits(resolution), size = configured_group(resolution.quantization());
  if (resolution.quantization()) {
    for (const auto& module : resolution.quantization()->modules) {
      if (tensor.name == module.name + ".weight") bits = module.bits, size = module.group_size;
    }
  }
  StoredShape shape = codes.shape;
  if (!bits || !size || __builtin_mul_overflow(scale.shape.back(), *size, &shape.back()))
    return resolution.unknown_form(tensor, "config.json says no bits and group_size");
  const auto packing = packing_of(shape.back(), codes.shape.back(), bits);
  if (!packing || packing->fill != IntPacking::Fill::dense)
    return resolution.unknown_form(tensor, fmt::format("not {} bits in groups of {}", *bits, *size));
  tensor.form.packed.codes = *packing;
  tensor.form.block_columns = *size;
  resolution.finish(tensor, shape);
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

void resolve_mlx(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (group.find("biases") != nullptr) return resolve_mlx_int(resolution, tensor, group);
  resolve_mlx_float(resolution, tensor, group);
}

}  // namespace

const StoredFormat kMlx = {
    .name = "MLX", .endings = kMlxEndings, .claims = claims_mlx, .resolve = resolve_mlx};

}  // namespace assay::formats
