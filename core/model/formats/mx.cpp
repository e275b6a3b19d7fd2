// OCP microscaling: a power of two for every 32 elements of a row. MXFP4 of gpt-oss (stacked experts in blocks),
// DeepSeek-V4, Quark and compressed-tensors; MXFP4 and MXFP8 are written as compressed-tensors stores them.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/formats/all.h"
#include "core/model/formats/compressed_tensors.h"
#include "core/model/stored_checks.h"
#include "core/model/weight_encoder.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/microscaling.h"
#include "core/system/json.h"

namespace assay::formats {
namespace {

constexpr NameEnding kMxEndings[] = {
    {"_weight.blocks", "_weight", StoredPart::codes},  // gpt-oss as first released
    {"_weight.scales", "_weight", StoredPart::scale},
    {"_proj_blocks", "_proj", StoredPart::codes},  // and as transformers has it
    {"_proj_scales", "_proj", StoredPart::scale},
};
constexpr std::string_view kMxMethods[] = {"mxfp4"};

bool is_gpt_oss(const StoredGroup& group) {
  return group.codes_are("proj_blocks") || group.codes_are("weight.blocks");
}

bool claims_mx(const StoredResolution& resolution, const LogicalTensor& tensor, const StoredGroup& group) {
  return is_gpt_oss(group) || holds_fp4(resolution, tensor, group, Fp4Scales::powers_of_two);
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

void resolve_mx(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (is_gpt_oss(group)) return resolve_gpt_oss(resolution, tensor, group);
  resolve_fp4_beside_scales(resolution, tensor, group);
}

// gpt-oss: blocks of 32 inputs, 16 bytes each.
bool holds_in_mx_blocks(const WeightMatrix& m, const CheckpointTensor& codes) {
  return m.in % 32 == 0 && m.stacks(codes.shape, {m.out, m.in / 32, 16});
}

std::vector<WeightFormat> mx_sizes() {
  WeightFormat format = WeightFormat::in_blocks(
      "mxfp4", "MXFP4: FP4, an E8M0 scale each 32; experts alone in MoE models", 4, 1, 32, 1);
  format.routed_experts_only = true;
  return {format};
}

std::optional<WeightFormat> configured_mx(const QuantizationConfig& config) {
  // ModelOpt's groups name no format: eight bits of a float, a scale each 32.
  const bool by_groups = !config.groups.empty() && config.groups.front().type == "float" &&
                         config.groups.front().bits == 8 && config.groups.front().group_size == 32;
  if (says(config, "mxfp8") || says(config, "MXFP8") || by_groups)
    return WeightFormat::in_blocks("mxfp8", "MXFP8 in blocks of 32", 8, 1, 32, 1);
  if (!says(config, "mxfp4") && !says(config, "MXFP4")) return std::nullopt;
  WeightFormat format = *weight_format("mxfp4");
  // gpt-oss's own quantizer takes experts alone; the others whatever their lists do not spare.
  if (config.method == "compressed-tensors" || config.method == "modelopt") {
    format.routed_experts_only = false;
    format.title = "MXFP4: FP4, an E8M0 scale each 32";
  }
  return format;
}

constexpr std::uint64_t kMxBlock = 32;

struct MxTarget {
  bool four = true;  // MXFP4; else MXFP8
  MxScaling scaling = MxScaling::even;
  Fp4Ties ties = Fp4Ties::even;
};

class MxEncoder : public WeightEncoder {
 public:
  explicit MxEncoder(const MxTarget& target) : target_(target) {}

  std::optional<std::string> refuses(const LogicalTensor& tensor) const override {
    if (tensor.columns % kMxBlock == 0) return std::nullopt;
    return fmt::format("rows of {} are not blocks of {}", tensor.columns, kMxBlock);
  }

  std::vector<EncodedPart> parts(const LogicalTensor& tensor) const override {
    const EncodedPart scales{"_scale", ElementType::U8, {tensor.rows, tensor.columns / kMxBlock}};
    if (four()) return {{"_packed", ElementType::U8, {tensor.rows, tensor.columns / 2}, false}, scales};
    return {{"", ElementType::F8_E4M3, tensor.shape, false}, scales};
  }

  std::string form(const LogicalTensor&) const override { return four() ? "MXFP4" : "MXFP8"; }

  Json quantization_config(const IgnoredModules& ignored) const override {
    CompressedScheme scheme{four() ? "mxfp4-pack-quantized" : "mxfp8-quantized",
                            quantization_arguments(four() ? 4 : 8, "float", "group", 32, false), nullptr};
    scheme.weights["scale_dtype"] = "torch.uint8";
    if (!four()) {
      scheme.inputs = quantization_arguments(8, "float", "group", 32, true);
      scheme.inputs["scale_dtype"] = "torch.uint8";
    }
    return compressed_tensors_config(scheme, ignored);
  }

  void encode(const RowsToEncode& in, EncodedRows& out) const override {
    const std::uint64_t columns = in.tensor.columns, blocks = columns / kMxBlock;
    const std::uint64_t row_codes = columns / (four() ? 2 : 1);
    out.begin(2);
    const auto codes = out.put(0, in.rows * row_codes, in.first * row_codes);
    const auto scales = out.put(1, in.rows * blocks, in.first * blocks);
    for (std::uint64_t r = 0; r < in.rows; ++r)
      encode_row(in.values.subspan(r * columns, columns), codes.subspan(r * row_codes, row_codes),
                 scales.subspan(r * blocks, blocks), out.error);
  }

 private:
  bool four() const { return target_.four; }

  void encode_row(std::span<const float> before, std::span<std::byte> codes,
                  std::span<std::byte> stored_scales, ErrorSums& error) const {
    thread_local Scratch<float> amax_memory, scale_memory, row_memory;
    const auto amax = amax_memory.take(stored_scales.size());
    const auto scales = scale_memory.take(stored_scales.size());
    const auto row = row_memory.take(before.size());  // the quotients, then the row as it will decode
    block_amax(before, 1, before.size(), 1, kMxBlock, amax);
    for (std::size_t i = 0; i < amax.size(); ++i)
      stored_scales[i] =
          static_cast<std::byte>(mx_scale(amax[i], target_.scaling, four() ? kMxE2M1 : kMxE4M3));
    simd::decode(ElementType::F8_E8M0, stored_scales, scales.data());
    // The largest value, too, rounds to the code 0: half a step of the smallest scale, or zero already.
    const float half_step = four() ? 0.25F : 0x1p-10F;
    for (std::size_t i = 0; i < amax.size(); ++i) error.zero_blocks += amax[i] <= half_step * scales[i];
    // Clamped is what lies more than half a step beyond the largest code: 6 (steps of 2), 448 (of 32).
    error.clamped += divide_blocks(before, kMxBlock, scales, four() ? 7.0F : 464.0F, row);
    if (four())
      encode_fp4(row, target_.ties, codes);
    else
      simd::encode(ElementType::F8_E4M3, row, Overflow::saturate, codes.data());
    simd::decode(four() ? ElementType::F4 : ElementType::F8_E4M3, codes, row.data());
    scale_row(row, kMxBlock, scales.data());
    error.add(before, row);
  }

  const MxTarget target_;
};

std::shared_ptr<const WeightEncoder> mx_target(const TargetText& text) {
  MxTarget target;
  auto options = text.options("mxfp4");
  if (!options) {
    options = text.options("mxfp8");
    target.four = false;
  }
  if (!options) return nullptr;
  text.for_each(*options, [&](std::string_view option) {
    if (option == "scale=floor")
      target.scaling = MxScaling::floor;
    else if (option == "scale=ceil")
      target.scaling = MxScaling::ceil;
    else if (option == "scale=even")
      target.scaling = MxScaling::even;
    else if (option == "scale=rceil")
      target.scaling = MxScaling::rceil;
    else
      return target.four && take_ties(option, target.ties);
    return true;
  });
  return std::make_shared<MxEncoder>(target);
}

}  // namespace

const StoredFormat kMx = {.name = "MXFP4 and MXFP8",
                          .endings = kMxEndings,
                          .methods = kMxMethods,
                          .claims = claims_mx,
                          .resolve = resolve_mx,
                          .holds = holds_in_mx_blocks,
                          .sizes = mx_sizes,
                          .configured = configured_mx,
                          .target = mx_target,
                          .target_names = "mxfp4, mxfp8",
                          .target_usage = "mxfp4 [,ties=down] | mxfp8 [,scale=floor|ceil|even|rceil]"};

}  // namespace assay::formats
