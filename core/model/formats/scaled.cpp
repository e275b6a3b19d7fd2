// FP8 and INT8, one code an element: a scale a block (DeepSeek, Qwen, SGLang's blockwise_int8), a row, or the
// tensor (compressed-tensors, ModelOpt, FBGEMM, Mistral's own releases, Llama 4); a power of two for 32 columns
// (MXFP8) is read here, and written by mx.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/model/composed_tensor.h"
#include "core/model/formats/all.h"
#include "core/model/formats/compressed_tensors.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_reader.h"
#include "core/model/weight_encoder.h"
#include "core/numeric/ceil_div.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/row_quantizer.h"
#include "core/system/error.h"
#include "core/system/json.h"

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

std::optional<std::uint32_t> weight_scale_place(const StoredGroup& group) {
  for (const std::string_view suffix : kWeightScales) {
    if (const auto place = group.place(suffix)) return place;
  }
  return std::nullopt;
}

bool take_weight_scales(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  tensor.scale = weight_scale_place(group);
  for (const std::string_view suffix : {"weight_scale_2", "proj_weight_scale_2"}) {
    if (!tensor.global_scale) tensor.global_scale = group.place(suffix);
  }
  const std::size_t known = known_beside(tensor) + (tensor.scale ? 1 : 0) + (tensor.global_scale ? 1 : 0);
  if (known == group.pieces.size()) return true;
  resolution.unknown_form(tensor);
  return false;
}

namespace formats {
namespace {

// --- names and grid ----------------------------------------------------------------------------------------

using Belief = NameEnding::Belief;

constexpr NameEnding kScaledEndings[] = {
    // DeepSeek, compressed-tensors, ModelOpt
    {".weight_scale_inv", ".weight", StoredPart::scale},
    {".weight_scale", ".weight", StoredPart::scale},
    {".input_scale_ub", ".weight", StoredPart::scale, Belief::always, true},  // FBGEMM
    {".input_scale", ".weight", StoredPart::scale, Belief::always, true},
    {".activation_scale", ".weight", StoredPart::scale, Belief::always, true},
    {".pre_quant_scale", ".weight", StoredPart::scale},
    // Mistral's own releases
    {".qscale_weight", ".weight", StoredPart::scale},
    {".qscale_act", ".weight", StoredPart::scale, Belief::always, true},
    {".scale", ".weight", StoredPart::scale, Belief::beside_a_weight},  // DeepSeek V4
    // stacked experts: Llama 4, transformers' FP8; w13_weight_scale of SGLang and vLLM
    {"_proj_weight_scale_inv", "_proj", StoredPart::scale},
    {"_proj_weight_scale", "_proj", StoredPart::scale},
    {"_proj_input_scale", "_proj", StoredPart::scale, Belief::always, true},
    {"_proj_scale_inv", "_proj", StoredPart::scale},
    {"_proj_scale", "_proj", StoredPart::scale, Belief::beside_codes},  // else a parameter of its own
    {"_weight_scale_inv", "_weight", StoredPart::scale},
    {"_weight_scale", "_weight", StoredPart::scale},
    {"_input_scale", "_weight", StoredPart::scale, Belief::always, true},
};
constexpr std::string_view kScaledMethods[] = {"fp8", "fbgemm_fp8", "blockwise_int8", "w8a8_int8",
                                               "modelopt"};

bool claims_scaled(const StoredResolution&, const LogicalTensor&, const StoredGroup& group) {
  return group.plain && weight_scale_place(group);
}

void resolve_beside_scales(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (!take_weight_scales(resolution, tensor, group)) return;
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  if (tensor.global_scale) tensor.form.global = GlobalScale::multiply;
  if (is_one_byte_float(codes.type) || codes.type == ElementType::I8)
    return resolve_scaled(resolution, tensor);
  resolution.fault("stored.scale_without_codes", resolution.stored(*tensor.scale).name,
                   fmt::format("a scale for {}, which is {} and needs none", codes.name, name(codes.type)));
}

// --- sizes -------------------------------------------------------------------------------------------------

// Scales are F32 in FP8 and INT8 releases.
WeightFormat scaled_blocks(std::string name, std::string_view codes, std::uint64_t rows,
                           std::uint64_t columns) {
  WeightFormat format = WeightFormat::in_blocks(std::move(name), "", 8, rows, columns, 4);
  format.codes_title = codes;
  format.set_block(rows, columns);
  return format;
}

std::vector<WeightFormat> scaled_sizes() {
  return {scaled_blocks("fp8-block", "FP8", 128, 128),
          WeightFormat::in_blocks("fp8-channel", "FP8, a scale each row", 8, 1, 0, 4),
          WeightFormat::in_blocks("int8-channel", "INT8, a scale each row", 8, 1, 0, 4)};
}

// compressed-tensors keeps scales in the type of the weights (initialize_qparams).
WeightFormat as_scaled_by(const QuantizationConfig& config, WeightFormat format) {
  if (config.method == "compressed-tensors") format.scale_bytes = 2;
  return format;
}

// Without blocks: compressed-tensors says whether a scale serves a row or a matrix; FBGEMM's serve rows, those of
// other releases a matrix.
std::optional<WeightFormat> configured_scaled(const QuantizationConfig& config) {
  if (const auto block = configured_block(config))
    return as_scaled_by(config, says(config, "int8")
                                    ? scaled_blocks("int8-block", "INT8", block->rows, block->columns)
                                    : scaled_blocks("fp8-block", "FP8", block->rows, block->columns));
  // ModelOpt's: blocks of a size that it does not write, as vLLM's KFp8Block128 reads them.
  if (says(config, "FP8_PB_WO") || says(config, "FP8_BLOCK_SCALES"))
    return scaled_blocks("fp8-block", "FP8", 128, 128);
  if (says(config, "fp8") || says(config, "FP8") || says(config, "float")) {
    const bool by_rows = config.method == "fbgemm_fp8" || says(config, "FP8_PER_CHANNEL_PER_TOKEN") ||
                         (!config.groups.empty() && config.groups.front().strategy == "channel");
    return as_scaled_by(
        config, by_rows ? *weight_format("fp8-channel")
                        : WeightFormat::in_blocks("fp8-tensor", "FP8, a scale each matrix", 8, 0, 0, 4));
  }
  if (said_bits(config) != 8) return std::nullopt;
  return as_scaled_by(config, *weight_format("int8-channel"));
}

// --- encoding ----------------------------------------------------------------------------------------------

struct ScaledTarget {
  enum class Grain : std::uint8_t { block, channel, tensor } grain = Grain::block;
  ElementType type = ElementType::I8;
  std::uint64_t block_rows = 0, block_columns = 0;
  ScaleRounding scale = ScaleRounding::none;
  Int8Range int8_range = Int8Range::symmetric_127;
  bool undeclared = false;  // int8:channel: config.json says nothing of it
};

class ScaledEncoder : public WeightEncoder {
 public:
  explicit ScaledEncoder(const ScaledTarget& target) : target_(target) {}

  std::vector<EncodedPart> parts(const LogicalTensor& tensor) const override {
    const BlockQuantizer quantizer = quantizer_of(tensor.rows, tensor.columns);
    std::vector<std::uint64_t> grid = {ceil_div(tensor.rows, quantizer.block_rows),
                                       ceil_div(tensor.columns, quantizer.block_columns)};
    if (whole()) grid = {1};
    const char* suffix = target_.grain == ScaledTarget::Grain::block ? "_scale_inv" : "_scale";
    return {{"", target_.type, tensor.shape, false}, {suffix, ElementType::F32, grid}};
  }

  std::string form(const LogicalTensor& tensor) const override {
    LogicalTensor after = tensor;
    const BlockQuantizer quantizer = quantizer_of(tensor.rows, tensor.columns);
    after.form = {.kind = FormKind::scaled, .codes = target_.type};
    after.form.block_rows = quantizer.block_rows;
    after.form.block_columns = quantizer.block_columns;
    return form_name(after);
  }

  // With one scale for the whole tensor, which a pass of its own finds, rows may be cut anywhere.
  std::uint64_t rows_together() const override {
    return target_.grain == ScaledTarget::Grain::block ? target_.block_rows : 1;
  }
  bool needs_whole_amax() const override { return whole(); }
  std::optional<BlockQuantizer> quantizer(std::uint64_t rows, std::uint64_t columns) const override {
    return quantizer_of(rows, columns);
  }
  bool takes_int8_range() const override {
    return target_.type == ElementType::I8 && target_.grain == ScaledTarget::Grain::channel;
  }
  Json quantization_config(const IgnoredModules& ignored) const override;
  std::string note() const override;

  void encode(const RowsToEncode& in, EncodedRows& out) const override {
    const BlockQuantizer quantizer = quantizer_of(in.tensor.rows, in.tensor.columns);
    const std::uint64_t columns = in.tensor.columns, block_rows = std::min(in.rows, quantizer.block_rows);
    const std::uint64_t across = ceil_div(columns, quantizer.block_columns);
    const std::uint64_t first_block = whole() ? 0 : in.first / quantizer.block_rows;
    out.begin(2);
    thread_local Scratch<float> amax_memory, scale_memory, row_memory;
    const auto amax = amax_memory.take(whole() ? 1 : ceil_div(in.rows, block_rows) * across);
    const auto scales = scale_memory.take(amax.size());
    if (whole())
      amax[0] = in.whole_amax;
    else
      block_amax(in.values, in.rows, columns, block_rows, quantizer.block_columns, amax);
    std::transform(amax.begin(), amax.end(), scales.begin(),
                   [&](float largest) { return quantizer.scale_for(largest); });
    if (in.given != nullptr) take_given(in, quantizer, first_block, scales);
    if (!whole()) out.error.zero_blocks = blocks_of_zeros(quantizer, amax, scales);

    const auto codes = out.put(0, in.values.size(), in.first * columns);
    const auto row = row_memory.take(columns);  // the quotients, then the row as it will decode
    for (std::uint64_t r = 0; r < in.rows; ++r) {
      const auto before = in.values.subspan(r * columns, columns);
      const float* scale = &scales[whole() ? 0 : r / quantizer.block_rows * across];
      const auto row_codes = codes.subspan(r * columns, columns);
      out.error.clamped += quantize_row(quantizer, before, scale, row, row_codes);
      simd::decode(target_.type, row_codes, row.data());
      scale_row(row, quantizer.block_columns, scale);
      out.error.add(before, row);
    }
    if (!whole() || in.first == 0) put_elements<float>(out, 1, scales, first_block * across * sizeof(float));
  }

 private:
  // Those whose largest value takes the code 0: all of their values are smaller than half a step of the
  // smallest scale, where they are not zeros from the beginning.
  static std::uint64_t blocks_of_zeros(BlockQuantizer quantizer, std::span<const float> amax,
                                       std::span<const float> scales) {
    thread_local Scratch<float> quotient_memory;
    thread_local Scratch<std::byte> code_memory;
    const auto codes = code_memory.take(amax.size());
    quantizer.block_columns = 1;
    quantize_row(quantizer, amax, scales.data(), quotient_memory.take(amax.size()), codes);
    return static_cast<std::uint64_t>(std::count(codes.begin(), codes.end(), std::byte{0}));
  }

  BlockQuantizer quantizer_of(std::uint64_t rows, std::uint64_t columns) const {
    BlockQuantizer made{.codes = target_.type,
                        .block_rows = target_.block_rows,
                        .block_columns = target_.block_columns,
                        .limit = largest_code_value(target_.type),
                        .rounding = target_.scale};
    if (target_.grain != ScaledTarget::Grain::block) {
      made.block_rows = target_.grain == ScaledTarget::Grain::channel ? 1 : rows;
      made.block_columns = columns;
    }
    if (target_.type == ElementType::I8 && target_.int8_range == Int8Range::compressed_tensors)
      made.limit = 127.5F;
    return made;
  }

  bool whole() const { return target_.grain == ScaledTarget::Grain::tensor; }

  static void take_given(const RowsToEncode& in, const BlockQuantizer& quantizer, std::uint64_t first_block,
                         std::span<float> scales) {
    const LogicalTensor* given = in.given->find(in.tensor.name);
    const bool fits = given != nullptr && given->form.kind == FormKind::scaled &&
                      given->shape == in.tensor.shape && given->form.block_rows == quantizer.block_rows &&
                      given->form.block_columns == quantizer.block_columns;
    if (!fits) {
      throw Error::refused("--scales-from has no scales for it in these blocks").tensor(in.tensor.name);
    }
    const std::uint64_t rows = scales.size() / given->scale_columns();
    StoredReader(in.given->reader, *given).decode_scales(first_block, rows, scales);
    for (const float scale : scales) {
      if (!(scale > 0) || std::isinf(scale))
        throw Error::refused("a given scale is not a positive number").tensor(in.tensor.name);
    }
  }

  const ScaledTarget target_;
};

const char* fp8_name(ElementType type) {
  switch (type) {
    case ElementType::F8_E5M2: return "e5m2";
    case ElementType::F8_E4M3FNUZ: return "e4m3fnuz";
    case ElementType::F8_E5M2FNUZ: return "e5m2fnuz";
    default: return "e4m3";
  }
}

// Blocks: DeepSeek's and Qwen's own form, read by vLLM, SGLang and transformers, and SGLang's blockwise_int8. Rows
// and tensors: compressed-tensors' FP8_DYNAMIC and W8A8 (activations scaled as they come, per token).
Json ScaledEncoder::quantization_config(const IgnoredModules& ignored) const {
  if (target_.undeclared) return nullptr;
  const bool is_int = target_.type == ElementType::I8;
  const Json block = {target_.block_rows, target_.block_columns};
  if (target_.grain == ScaledTarget::Grain::block && is_int) {
    return {{"activation_scheme", "dynamic"},
            {"quant_method", "blockwise_int8"},
            {"weight_block_size", block},
            {"ignored_layers", ignored.names}};
  }
  if (target_.grain == ScaledTarget::Grain::block) {
    Json config = {{"activation_scheme", "dynamic"},
                   {"fmt", fp8_name(target_.type)},
                   {"quant_method", "fp8"},
                   {"weight_block_size", block}};
    if (target_.scale == ScaleRounding::power_of_two) config["scale_fmt"] = "ue8m0";
    config["modules_to_not_convert"] = ignored.for_fp8();
    return config;
  }
  const char* type = is_int ? "int" : "float";
  const char* strategy = target_.grain == ScaledTarget::Grain::channel ? "channel" : "tensor";
  return compressed_tensors_config({is_int ? "int-quantized" : "float-quantized",
                                    quantization_arguments(8, type, strategy, nullptr, false),
                                    quantization_arguments(8, type, "token", nullptr, true)},
                                   ignored);
}

std::string ScaledEncoder::note() const {
  if (target_.undeclared)
    return "config.json says nothing of these codes: start SGLang with --quantization w8a8_int8; others take "
           "them for weights";
  if (target_.type == ElementType::F8_E4M3FNUZ || target_.type == ElementType::F8_E5M2FNUZ)
    return "engines take FP8 for fn and turn it into fnuz themselves; these codes are fnuz already";
  return {};
}

struct Fp8Type {
  std::string_view name;
  bool e5m2, fnuz;
};
constexpr std::array<Fp8Type, 4> kFp8Types = {
    {{"e4m3", false, false}, {"e5m2", true, false}, {"e4m3fnuz", false, true}, {"e5m2fnuz", true, true}}};

// fp8:block=128x128 | fp8:channel | fp8:tensor with ,scale=f32|ue8m0 and ,e4m3|e5m2 and ,fnuz;
// int8:block=128x128 | int8:channel
std::shared_ptr<const WeightEncoder> scaled_target(const TargetText& text) {
  const bool floats = text.text.starts_with("fp8:");
  if (!floats && !text.text.starts_with("int8:")) return nullptr;
  ScaledTarget target;
  target.int8_range = text.int8_range;
  bool grain_given = false, e5m2 = false, fnuz = false;
  const auto take_type = [&](std::string_view option) {
    const auto found = std::find_if(kFp8Types.begin(), kFp8Types.end(),
                                    [&](const Fp8Type& type) { return type.name == option; });
    if (found == kFp8Types.end()) return false;
    e5m2 = found->e5m2;
    fnuz |= found->fnuz;
    return true;
  };
  const auto take = [&](std::string_view option) {
    const bool is_grain = option.starts_with("block=") || option == "channel" || option == "tensor";
    if (is_grain && grain_given) text.refuse("block, channel and tensor exclude each other");
    grain_given |= is_grain;
    if (option.starts_with("block=")) {
      const TargetText::Block block = text.block(option.substr(6));
      target.block_rows = block.rows, target.block_columns = block.columns;
    } else if (option == "channel") {
      target.grain = ScaledTarget::Grain::channel;
    } else if (option == "tensor" && floats) {
      target.grain = ScaledTarget::Grain::tensor;
    } else if (option == "scale=ue8m0" && floats) {
      target.scale = ScaleRounding::power_of_two;
    } else if (option == "scale=f32") {
      target.scale = ScaleRounding::none;
    } else if (option == "fnuz" && floats) {
      fnuz = true;
    } else if (option == "config=none" && !floats) {
      target.undeclared = true;
    } else {
      return floats && take_type(option);
    }
    return true;
  };
  text.for_each(text.text.substr(floats ? 4 : 5), take);
  if (!grain_given) text.refuse("block=ROWSxCOLUMNS or channel is needed");
  if (target.undeclared && target.grain != ScaledTarget::Grain::channel)
    text.refuse("config=none goes with int8:channel");
  if (floats && fnuz)
    target.type = e5m2 ? ElementType::F8_E5M2FNUZ : ElementType::F8_E4M3FNUZ;
  else if (floats)
    target.type = e5m2 ? ElementType::F8_E5M2 : ElementType::F8_E4M3;
  return std::make_shared<ScaledEncoder>(target);
}

}  // namespace

const StoredFormat kScaled = {.name = "FP8 and INT8",
                              .endings = kScaledEndings,
                              .methods = kScaledMethods,
                              .claims = claims_scaled,
                              .resolve = resolve_beside_scales,
                              .sizes = scaled_sizes,
                              .configured = configured_scaled,
                              .target = scaled_target,
                              .target_names = "fp8:…, int8:…",
                              .target_usage =
                                  "fp8:block=RxC | fp8:channel | fp8:tensor [,scale=ue8m0] [,e5m2] [,fnuz]\n"
                                  "      | int8:block=RxC | int8:channel [,config=none]"};

}  // namespace formats
}  // namespace assay
