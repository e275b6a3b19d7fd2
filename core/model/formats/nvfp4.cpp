// NVFP4: E2M1 codes, two a byte, an E4M3 scale for every 16 elements of a row, one float32 scale for the tensor:
// ModelOpt's `weight_scale_2`, by which it multiplies, or compressed-tensors' `weight_global_scale`, by which it
// divides. With amax the tensor's largest magnitude and b a block's:
//
//   compressed-tensors   g = 448 · 6 · (1/amax)   s = e4m3(g · (b / 6)), 0.125 in place of 0       w ≈ q · (s / g)
//   ModelOpt             g = amax / (6 · 448)     s = e4m3(b / (6 · g)), within [2^-9, 448];       w ≈ q · (s · g)
//                                                 of a block of zeros 1
//
// Sources: compressed-tensors `generate_gparam`, `calculate_qparams`; Model-Optimizer `NVFP4QTensor`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/model/formats/all.h"
#include "core/model/formats/compressed_tensors.h"
#include "core/model/stored_checks.h"
#include "core/model/weight_encoder.h"
#include "core/numeric/ceil_div.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/microscaling.h"
#include "core/system/error.h"
#include "core/system/json.h"

namespace assay {

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
  grid.back() = ceil_div(shape.back(), group);
  if (resolution.stored(*tensor.scale).shape != grid) return resolution.bad_grid(tensor, shape);
  if (tensor.global_scale) {
    const CheckpointTensor& global = resolution.stored(*tensor.global_scale);
    if (element_count(global.shape) != 1 || global.type != ElementType::F32)
      return resolution.unknown_form(tensor);
  }
  tensor.form.block_columns = group;
  resolution.finish(tensor, shape);
}

// compressed-tensors packs into weight_packed; others keep the codes under the weight's own name.
bool holds_fp4(const StoredResolution& resolution, const LogicalTensor& tensor, const StoredGroup& group,
               Fp4Scales scales) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const bool packed = group.codes_are("weight_packed");
  const auto place = packed ? group.place("weight_scale") : weight_scale_place(group);
  if (packed && !place) return codes.type == ElementType::U8 && scales == Fp4Scales::others;
  if (!place || (!packed && !group.plain)) return false;
  const CheckpointTensor& scale = resolution.stored(*place);
  const bool two_a_byte = codes.type == ElementType::U8 ||
                          (!packed && (codes.type == ElementType::F4 ||
                                       (codes.type == ElementType::I8 && packs_two(codes, scale))));
  const bool powers = scale.type == ElementType::U8 || scale.type == ElementType::F8_E8M0;
  return two_a_byte && powers == (scales == Fp4Scales::powers_of_two);
}

void resolve_fp4_beside_scales(StoredResolution& resolution, LogicalTensor& tensor,
                               const StoredGroup& group) {
  if (!group.codes_are("weight_packed")) {
    if (!take_weight_scales(resolution, tensor, group)) return;
    if (tensor.global_scale) tensor.form.global = GlobalScale::multiply;
    return resolve_fp4(resolution, tensor);
  }
  tensor.scale = group.place("weight_scale");
  tensor.global_scale = group.place("weight_global_scale");
  if (tensor.global_scale) tensor.form.global = GlobalScale::divide;
  const std::size_t known = 2 + known_beside(tensor) + (tensor.global_scale ? 1 : 0);
  if (!tensor.scale || known != group.pieces.size()) return resolution.unknown_form(tensor);
  resolve_fp4(resolution, tensor);
}

namespace formats {
namespace {

constexpr NameEnding kNvfp4Endings[] = {
    {".weight_global_scale", ".weight", StoredPart::scale},
    {".weight_scale_2", ".weight", StoredPart::scale},
    {".input_global_scale", ".weight", StoredPart::scale, NameEnding::Belief::always, true},
    {"_proj_weight_scale_2", "_proj", StoredPart::scale},
    {"_weight_scale_2", "_weight", StoredPart::scale},
};

bool claims_nvfp4(const StoredResolution& resolution, const LogicalTensor& tensor, const StoredGroup& group) {
  return holds_fp4(resolution, tensor, group, Fp4Scales::others);
}

std::vector<WeightFormat> nvfp4_sizes() {
  WeightFormat format = WeightFormat::in_blocks("nvfp4", "NVFP4: FP4, an FP8 scale each 16", 4, 1, 16, 1);
  format.per_matrix_bytes = 8;  // weight_scale_2 and input_scale, F32
  return {format};
}

std::optional<WeightFormat> configured_nvfp4(const QuantizationConfig& config) {
  // ModelOpt's config_groups say no more than this.
  const bool four_bit_floats = !config.groups.empty() && config.groups.front().type == "float" &&
                               config.groups.front().bits == 4 && config.groups.front().group_size == 16;
  return four_bit_floats || says(config, "nvfp4") || says(config, "NVFP4") ? weight_format("nvfp4")
                                                                           : std::nullopt;
}

constexpr std::uint64_t kNvfp4Block = 16;
constexpr float kLargestE2m1 = 6.0F, kLargestE4m3 = 448.0F;

struct Nvfp4Target {
  bool modelopt = false;  // NVIDIA ModelOpt's names and conventions
  Fp4Ties ties = Fp4Ties::even;
};

class Nvfp4Encoder : public WeightEncoder {
 public:
  explicit Nvfp4Encoder(const Nvfp4Target& target) : target_(target) {}

  std::optional<std::string> refuses(const LogicalTensor& tensor) const override {
    if (tensor.columns % kNvfp4Block == 0) return std::nullopt;
    return fmt::format("rows of {} are not blocks of {}", tensor.columns, kNvfp4Block);
  }

  std::vector<EncodedPart> parts(const LogicalTensor& tensor) const override {
    const std::vector<std::uint64_t> codes = {tensor.rows, tensor.columns / 2};
    const EncodedPart scales{"_scale", ElementType::F8_E4M3, {tensor.rows, tensor.columns / kNvfp4Block}};
    if (target_.modelopt)
      return {{"", ElementType::U8, codes, false}, scales, {"_scale_2", ElementType::F32, {}}};
    return {{"_packed", ElementType::U8, codes, false}, scales, {"_global_scale", ElementType::F32, {1}}};
  }

  std::string form(const LogicalTensor&) const override { return "NVFP4"; }
  bool needs_whole_amax() const override { return true; }
  Json quantization_config(const IgnoredModules& ignored) const override;
  std::vector<std::pair<std::string, Json>> files_beside(const IgnoredModules& ignored) const override;

  void encode(const RowsToEncode& in, EncodedRows& out) const override {
    const std::uint64_t columns = in.tensor.columns, blocks = columns / kNvfp4Block;
    const float global = global_scale(in.whole_amax);
    out.begin(3);
    const auto codes = out.put(0, in.rows * columns / 2, in.first * columns / 2);
    const auto scales = out.put(1, in.rows * blocks, in.first * blocks);
    for (std::uint64_t r = 0; r < in.rows; ++r)
      encode_row(in.values.subspan(r * columns, columns), global, codes.subspan(r * columns / 2, columns / 2),
                 scales.subspan(r * blocks, blocks), out.error);
    if (in.first == 0) put_elements<float>(out, 2, std::span(&global, 1), 0);
  }

 private:
  void encode_row(std::span<const float> before, float global, std::span<std::byte> codes,
                  std::span<std::byte> stored_scales, ErrorSums& error) const {
    thread_local Scratch<float> amax_memory, scale_memory, row_memory;
    const auto amax = amax_memory.take(stored_scales.size());
    const auto scales = scale_memory.take(stored_scales.size());
    const auto row = row_memory.take(before.size());  // the quotients, then the row as it will decode
    block_amax(before, 1, before.size(), 1, kNvfp4Block, amax);
    std::transform(amax.begin(), amax.end(), scales.begin(),
                   [&](float largest) { return block_scale(largest, global); });
    simd::encode(ElementType::F8_E4M3, scales, Overflow::saturate, stored_scales.data());
    simd::decode(ElementType::F8_E4M3, stored_scales, scales.data());
    if (!target_.modelopt) replace_zeros(scales, stored_scales);
    for (float& scale : scales) scale = target_.modelopt ? scale * global : scale / global;
    // The largest value, too, rounds to the code 0 (half of the smallest step), or the scale has become 0.
    for (std::size_t i = 0; i < amax.size(); ++i)
      error.zero_blocks += amax[i] <= 0.25F * scales[i] || scales[i] == 0;

    error.clamped += divide_blocks(before, kNvfp4Block, scales, 7.0F, row);
    encode_fp4(row, target_.ties, codes);
    simd::decode(ElementType::F4, codes, row.data());
    scale_row(row, kNvfp4Block, scales.data());
    error.add(before, row);
  }

  float global_scale(float amax) const {
    if (target_.modelopt) {
      const float scale = amax / (kLargestE2m1 * kLargestE4m3);
      return scale == 0 ? 1.0F : scale;
    }
    const float inverse = 1 / std::max(amax, std::numeric_limits<float>::min());  // as torch divides a number
    const float scale = inverse * (kLargestE4m3 * kLargestE2m1);
    return std::isinf(scale) ? 1.0F : scale;
  }

  float block_scale(float amax, float global) const {
    if (!target_.modelopt) return global * (amax / kLargestE2m1);
    const float scale = amax / (kLargestE2m1 * global);
    return scale == 0 ? 1.0F : std::clamp(scale, 0x1p-9F, kLargestE4m3);
  }

  static void replace_zeros(std::span<float> scales, std::span<std::byte> stored) {
    constexpr float kInPlaceOfZero = 0.125F;  // the step of E4M3 at 1
    constexpr std::byte kItsCode{0x20};
    for (std::size_t i = 0; i < scales.size(); ++i) {
      if (scales[i] != 0) continue;
      scales[i] = kInPlaceOfZero;
      stored[i] = kItsCode;
    }
  }

  const Nvfp4Target target_;
};

// ModelOpt: what hf_quant_config.json says, and the same in the words of config.json.
constexpr const char* kModelOptAlgorithm = "W4A16_NVFP4";

Json Nvfp4Encoder::quantization_config(const IgnoredModules& ignored) const {
  if (!target_.modelopt) {
    CompressedScheme scheme{"nvfp4-pack-quantized",
                            quantization_arguments(4, "float", "tensor_group", 16, false), nullptr};
    scheme.weights["scale_dtype"] = "torch.float8_e4m3fn";
    return compressed_tensors_config(scheme, ignored);
  }
  const Json weights = {{"dynamic", false}, {"num_bits", 4}, {"type", "float"}, {"group_size", 16}};
  return {{"config_groups", {{"group_0", {{"weights", weights}, {"targets", {"Linear"}}}}}},
          {"ignore", ignored.for_modelopt()},
          {"quant_algo", kModelOptAlgorithm},
          {"producer", {{"name", "modelopt"}}},
          {"quant_method", "modelopt"}};
}

std::vector<std::pair<std::string, Json>> Nvfp4Encoder::files_beside(const IgnoredModules& ignored) const {
  if (!target_.modelopt) return {};
  const Json document = {{"producer", {{"name", "modelopt"}}},
                         {"quantization",
                          {{"quant_algo", kModelOptAlgorithm},
                           {"kv_cache_quant_algo", nullptr},
                           {"group_size", 16},
                           {"exclude_modules", ignored.for_modelopt()}}}};
  std::vector<std::pair<std::string, Json>> files;
  files.emplace_back("hf_quant_config.json", document);
  return files;
}

std::shared_ptr<const WeightEncoder> nvfp4_target(const TargetText& text) {
  const auto options = text.options("nvfp4");
  if (!options) return nullptr;
  Nvfp4Target target;
  text.for_each(*options, [&](std::string_view option) {
    if (option == "layout=modelopt")
      target.modelopt = true;
    else if (option == "layout=compressed-tensors")
      target.modelopt = false;
    else
      return take_ties(option, target.ties);
    return true;
  });
  return std::make_shared<Nvfp4Encoder>(target);
}

}  // namespace

const StoredFormat kNvfp4 = {.name = "NVFP4",
                             .endings = kNvfp4Endings,
                             .claims = claims_nvfp4,
                             .resolve = resolve_fp4_beside_scales,
                             .sizes = nvfp4_sizes,
                             .configured = configured_nvfp4,
                             .target = nvfp4_target,
                             .target_names = "nvfp4",
                             .target_usage = "nvfp4 [,layout=modelopt] [,ties=down]"};

}  // namespace formats
}  // namespace assay
