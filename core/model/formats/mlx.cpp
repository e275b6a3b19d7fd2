// MLX: integers in `weight` beside `scales` and `biases`; or small floats beside `scales` alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>

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
  if (!packing || packing->fill != IntPacking::Fill::dense) {
    const std::uint64_t groups = scale.shape.back(), stored = 32 * codes.shape.back();
    if (groups == 0 || stored % groups != 0 || *bits == 0 || *bits > 8)
      return resolution.unknown_form(tensor, fmt::format("not {} bits in groups of {}", *bits, *size));
    return resolution.form_differs(
        tensor, fmt::format("{} bits in groups of {}, {} bits under a scale", *bits, *size, *bits * *size),
        fmt::format("{} bits under a scale", stored / groups));
  }
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

// mlx_lm writes no method: "quantization": {"group_size": 64, "bits": 4, "mode": "affine"}, the mode only lately.
bool is_mlx(const QuantizationConfig& config) {
  constexpr std::array<std::string_view, 5> kModes = {"", "affine", "mxfp4", "nvfp4", "mxfp8"};
  const bool other = config.symmetric || config.activation_order || !config.groups.empty();
  return config.method.empty() && config.bits && config.group_size && !other &&
         std::find(kModes.begin(), kModes.end(), config.format) != kModes.end();
}

// A scale and a bias a group in the type of the weights; in the modes of small floats a byte.
WeightFormat mlx_size(const std::string& mode, std::uint64_t bits, std::uint64_t group) {
  const bool affine = mode.empty() || mode == "affine";
  const std::string title = affine ? fmt::format("MLX INT{}, a scale and a bias each {}", bits, group)
                                   : fmt::format("MLX {}, a scale each {}", mode, group);
  WeightFormat format =
      WeightFormat::in_blocks(affine ? fmt::format("mlx-int{}-g{}", bits, group) : "mlx-" + mode, title, bits,
                              1, group, affine ? 4 : 1);
  format.word_bytes = 4;
  format.every_module = WeightFormat::EveryModule::with_routers;
  return format;
}

std::optional<WeightFormat> configured_mlx(const QuantizationConfig& config) {
  constexpr std::uint64_t kMostBits = 8;
  if (!is_mlx(config) || *config.bits == 0 || *config.bits > kMostBits || *config.group_size == 0)
    return std::nullopt;
  return mlx_size(config.format, *config.bits, *config.group_size);
}

}  // namespace

const StoredFormat kMlx = {.name = "MLX",
                           .endings = kMlxEndings,
                           .claims = claims_mlx,
                           .resolve = resolve_mlx,
                           .configured = configured_mlx};

}  // namespace assay::formats
