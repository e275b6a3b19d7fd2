// GPTQ and AWQ: integers in `qweight`, inputs first, with `scales` [groups, out], `qzeros` and `g_idx`. Which of the
// two it is, shapes tell: GPTQ packs along inputs, AWQ along outputs.
#include <fmt/format.h>

#include "core/model/formats/all.h"
#include "core/model/formats/words.h"
#include "core/model/stored_checks.h"

namespace assay::formats {
namespace {

using Fill = IntPacking::Fill;

constexpr NameEnding kQweightEndings[] = {
    {".qweight", ".weight", StoredPart::codes},
    {".qzeros", ".weight", StoredPart::zero_point},
    {".g_idx", ".weight", StoredPart::table, NameEnding::Belief::beside_a_weight},
    {".scales", ".weight", StoredPart::scale, NameEnding::Belief::beside_a_weight},
};
constexpr std::string_view kGptqMethods[] = {"gptq", "auto-round", "intel/auto-round"};
constexpr std::string_view kAwqMethods[] = {"awq"};

// Scales, zero points and group index of either; the number of outputs. nullopt: a fault was told.
std::optional<std::uint64_t> take_qweight(StoredResolution& resolution, LogicalTensor& tensor,
                                          const StoredGroup& group) {
  const auto unknown = [&](std::string_view why = {}) {
    resolution.unknown_form(tensor, why);
    return std::nullopt;
  };
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place("scales");
  tensor.zeros = group.place("qzeros");
  tensor.group_index = group.place("g_idx");
  const std::size_t known = 1 + known_beside(tensor) + (tensor.scale ? 1 : 0) + (tensor.zeros ? 1 : 0) +
                            (tensor.group_index ? 1 : 0);
  if (!tensor.scale || known != group.pieces.size() || !is_word(codes.type) || codes.shape.size() != 2)
    return unknown();
  const StoredShape& grid = resolution.stored(*tensor.scale).shape;
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  tensor.form.transposed = true;
  if (grid.size() != 2 || !resolution.take_scale_type(tensor)) return unknown();
  const std::uint64_t out = grid.back();
  if (tensor.zeros) {
    const CheckpointTensor& zeros = resolution.stored(*tensor.zeros);
    if (!is_word(zeros.type) || zeros.shape.size() != 2 || zeros.shape.front() != grid.front())
      return unknown("qzeros");
  }
  return out;
}

// How the zero points are meant: GPTQ's checkpoint_format and auto-round's packing_format tell.
std::optional<ZeroPoint> gptq_zero_point(const QuantizationConfig& config) {
  if (config.method == "gptq") {
    if (config.format.empty() || config.format == "gptq") return ZeroPoint::packed_less_1;
    return config.format == "gptq_v2" ? std::optional(ZeroPoint::packed) : std::nullopt;
  }
  if (config.method != "auto-round" && config.method != "intel/auto-round") return std::nullopt;
  if (config.format == "auto_round:auto_gptq") return ZeroPoint::packed_less_1;
  return config.format == "auto_round" || config.format == "auto_round:gptqmodel"
             ? std::optional(ZeroPoint::packed)
             : std::nullopt;
}

// Why the zero points of integers that lie as GPTQ packs them cannot be read.
void of_no_gptq(StoredResolution& resolution, const LogicalTensor& tensor) {
  const auto& config = resolution.quantization();
  if (!config)
    return resolution.unknown_form(
        tensor, "only quantization_config tells how GPTQ's zero points are meant, and there is none");
  const std::string& method = config->method;
  if (method == "awq" || method == "compressed-tensors" || method == "modelopt" || method == "fp8")
    return resolution.form_differs(tensor, method, "integers packed along the inputs, as GPTQ does");
  resolution.unknown_form(
      tensor,
      fmt::format("{}{} does not tell how GPTQ's zero points are meant",
                  method.empty() ? "a quantization_config without quant_method" : method,
                  config->format.empty() ? "" : fmt::format(" in its format \"{}\"", config->format)));
}

// qweight [in/8, out] when packed along inputs, [in, out/8] when along outputs; scales [groups, out] say out.
void resolve_gptq(StoredResolution& resolution, LogicalTensor& tensor, std::uint64_t out) {
  const auto& config = resolution.quantization();
  const auto zero = config ? gptq_zero_point(*config) : std::nullopt;
  if (!zero) return of_no_gptq(resolution, tensor);
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const CheckpointTensor& zeros = resolution.stored(*tensor.zeros);
  auto zero_packing = packing_of(out, zeros.shape.back(), config->bits);
  if (!zero_packing) zero_packing = packing_of(out, zeros.shape.back());  // this layer has a width of its own
  if (!zero_packing || zero_packing->fill != Fill::dense ||
      (zero_packing->bits != 2 && zero_packing->bits != 3 && zero_packing->bits != 4 &&
       zero_packing->bits != 8))
    return resolution.unknown_form(tensor, "bits an element");
  std::uint64_t in = codes.shape.front();
  if (__builtin_mul_overflow(in, std::uint64_t{32}, &in)) return resolution.unknown_form(tensor);
  in /= zero_packing->bits;
  if (tensor.group_index) {
    const CheckpointTensor& index = resolution.stored(*tensor.group_index);
    if (index.type != ElementType::I32 || index.shape.size() != 1)
      return resolution.unknown_form(tensor, "g_idx");
    in = index.shape.front();
  }
  if (zero_packing->words(in) != codes.shape.front()) return resolution.unknown_form(tensor, "sizes");
  const auto columns = group_columns(in, zeros.shape.front(), config);
  if (!columns) return resolution.bad_grid(tensor, {out, in});
  tensor.form.block_columns = *columns;
  tensor.form.packed.codes = tensor.form.packed.zeros = *zero_packing;
  tensor.form.packed.codes_across = true;
  tensor.form.packed.zero = *zero;
  resolution.finish(tensor, {out, in});
}

void resolve_awq(StoredResolution& resolution, LogicalTensor& tensor, std::uint64_t out) {
  const auto& config = resolution.quantization();
  const bool gemm = !config || config->format.empty() || config->format == "gemm" ||
                    config->format == "GEMM" || config->format == "auto_round:auto_awq";
  const bool other_bits = config && config->bits && *config->bits != 4;
  if (gemm && other_bits && !tensor.group_index && config->modules.empty())
    return resolution.form_differs(tensor, fmt::format("{} bits", *config->bits), "AWQ's integers of 4 bits");
  if (!gemm || other_bits || tensor.group_index)
    return resolution.unknown_form(tensor, "AWQ is known in its 4-bit gemm version");
  const std::uint64_t in = resolution.stored(tensor.codes).shape.front();
  const auto columns = group_columns(in, resolution.stored(*tensor.scale).shape.front(), config);
  if (!columns) return resolution.bad_grid(tensor, {out, in});
  tensor.form.block_columns = *columns;
  tensor.form.packed.codes = tensor.form.packed.zeros = {4, Fill::awq};
  tensor.form.packed.zero = tensor.zeros ? ZeroPoint::packed : ZeroPoint::middle;
  resolution.finish(tensor, {out, in});
}

bool claims_qweight(const StoredResolution&, const LogicalTensor&, const StoredGroup& group) {
  return group.codes_are("qweight");
}

bool packs_outputs(const StoredResolution& resolution, const LogicalTensor& tensor,
                   const StoredGroup& group) {
  const auto scales = group.place("scales"), zeros = group.place("qzeros");
  const StoredShape& codes = resolution.stored(tensor.codes).shape;
  if (!group.codes_are("qweight") || !scales || codes.size() != 2) return false;
  const StoredShape& grid = resolution.stored(*scales).shape;
  if (grid.size() != 2 || grid.back() % 8 != 0 || codes.back() != grid.back() / 8) return false;
  if (zeros && codes.back() == grid.back()) return false;  // of no outputs
  const StoredShape* packed = zeros ? &resolution.stored(*zeros).shape : nullptr;
  return packed == nullptr || packed->size() != 2 || packed->back() == grid.back() / 8;
}

void resolve_gptq_group(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const auto out = take_qweight(resolution, tensor, group);
  if (!out) return;
  if (resolution.stored(tensor.codes).shape.back() == *out && tensor.zeros)
    return resolve_gptq(resolution, tensor, *out);
  resolution.unknown_form(tensor);
}

void resolve_awq_group(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (const auto out = take_qweight(resolution, tensor, group)) resolve_awq(resolution, tensor, *out);
}

// Codes, F16 scales and packed zero points, and no stored shape.
WeightFormat configured_qweight(const QuantizationConfig& config) {
  WeightFormat format = configured_grouped_int(config);
  format.per_matrix_bytes = 0;
  format.zero_bits = format.bits;
  return format;
}

// Beside them the group of each input, which AutoRound leaves out.
std::optional<WeightFormat> configured_gptq(const QuantizationConfig& config) {
  if (!says(config, "gptq")) return std::nullopt;
  WeightFormat format = configured_qweight(config);
  if (!says(config, "auto-round")) format.input_bytes = 4;
  return format;
}

std::optional<WeightFormat> configured_awq(const QuantizationConfig& config) {
  return says(config, "awq") ? std::optional(configured_qweight(config)) : std::nullopt;
}

}  // namespace

const StoredFormat kGptq = {.name = "GPTQ",
                            .endings = kQweightEndings,
                            .methods = kGptqMethods,
                            .claims = claims_qweight,
                            .resolve = resolve_gptq_group,
                            .configured = configured_gptq};
const StoredFormat kAwq = {.name = "AWQ",
                           .methods = kAwqMethods,
                           .claims = packs_outputs,
                           .resolve = resolve_awq_group,
                           .configured = configured_awq};

}  // namespace assay::formats
