// AMD Quark's integers: `weight` beside weight_scale and weight_zero_point.
//
//   per_group     weight [in, out/8] in words, or [in, out] in bytes; scale [groups, out]
//   per_channel   weight [out, in/8]; scale [out]
//
// Zero points are packed as the weight is, along outputs.
// Eight codes a word in AWQ's order (pack_method "reorder") or one after the other ("order"). int4 is signed,
// uint4 is not, and only quantization_config tells. Source: Quark `torch/utils/pack.py`, `realquantizer.py`.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/composed_tensor.h"
#include "core/model/formats/all.h"
#include "core/model/formats/words.h"
#include "core/model/stored_checks.h"

namespace assay::formats {
namespace {

using Fill = IntPacking::Fill;

// Shell patterns as Python's fnmatch knows them, without its sets: * and ?.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++, mark = t;
    } else if (star != std::string_view::npos) {
      p = star + 1, t = ++mark;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

// What the config says of this weight: the pattern that fits, else the settings of all.
const QuantizationConfig::Group* settings_of(const StoredResolution& resolution, std::string_view weight) {
  const auto& config = resolution.quantization();
  if (!config || config->method != "quark") return nullptr;
  weight.remove_suffix(std::min(weight.size(), std::string_view(".weight").size()));
  for (const auto& module : config->modules) {
    if (matches(module.name, weight)) return &module;
  }
  return config->groups.empty() ? nullptr : &config->groups.front();
}

std::optional<Fill> fill_of(const StoredResolution& resolution) {
  const std::string& method = resolution.quantization()->format;
  if (method == "reorder") return Fill::awq;
  return method == "order" ? std::optional(Fill::dense) : std::nullopt;
}

struct Sizes {
  std::uint64_t out = 0, in = 0, groups = 0;
};

// Shapes of codes, scales and zero points under a packing; nullopt: they do not go together.
std::optional<Sizes> sizes_of(const StoredShape& codes, const StoredShape& scale, const StoredShape& zeros,
                              const IntPacking& packing, bool by_groups) {
  if (by_groups) {
    if (codes.size() != 2 || scale.size() != 2 || scale[0] == 0 || codes[0] == 0 || codes[0] % scale[0] != 0)
      return std::nullopt;
    const Sizes sizes{scale[1], codes[0], scale[0]};
    const std::uint64_t words = sizes.out * packing.bits / 8;  // in bytes of the stored type
    const bool fits = sizes.out % 8 == 0 && zeros == StoredShape{sizes.groups, codes[1]} &&
                      (packing.bits == 4 ? codes[1] == words / 4 : codes[1] == words);
    return fits ? std::optional(sizes) : std::nullopt;
  }
  if (codes.size() != 2 || packing.bits != 4 || scale.size() != 1 || scale[0] != codes[0] || codes[1] == 0)
    return std::nullopt;
  const Sizes sizes{codes[0], codes[1] * 8, 1};
  const bool fits = sizes.out % 8 == 0 && zeros == StoredShape{sizes.out / 8};
  return fits ? std::optional(sizes) : std::nullopt;
}

void resolve_packed(StoredResolution& resolution, LogicalTensor& tensor,
                    const QuantizationConfig::Group& group) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const bool four = group.type == "int4" || group.type == "uint4";
  const auto fill = four ? fill_of(resolution) : std::optional(Fill::dense);
  if (!fill)
    return resolution.unknown_form(tensor, fmt::format("pack_method is \"{}\": reorder and order are known",
                                                       resolution.quantization()->format));
  const bool by_groups = group.strategy == "per_group";
  if (!by_groups && group.strategy != "per_channel")
    return resolution.unknown_form(tensor, fmt::format("Quark's {} {}", group.strategy, group.type));
  const CheckpointTensor& zeros = resolution.stored(*tensor.zeros);
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  tensor.form.transposed = by_groups;
  tensor.form.packed = {.codes = {four ? 4u : 8u, *fill},
                        .zeros = {four ? 4u : 8u, *fill},
                        .zeros_across = !by_groups,
                        .zero = ZeroPoint::packed};
  const bool is_signed = group.type == "int4" || group.type == "int8";
  set_details(tensor, {.maker = "Quark", .twos_complement = is_signed});
  if (!resolution.take_scale_type(tensor)) return;
  const auto sizes = sizes_of(codes.shape, resolution.stored(*tensor.scale).shape, zeros.shape,
                              tensor.form.packed.codes, by_groups);
  if (!sizes || zeros.type != codes.type) return resolution.unknown_form(tensor, "sizes");
  tensor.form.block_columns = sizes->in / sizes->groups;
  if (by_groups && group.group_size && *group.group_size != tensor.form.block_columns)
    return resolution.bad_grid(tensor, {sizes->out, sizes->in});
  resolution.finish(tensor, {sizes->out, sizes->in});
}

// Quark writes zero points of symmetric weights, too.
void resolve_symmetric(StoredResolution& resolution, LogicalTensor& tensor) {
  constexpr std::uint64_t kMost = 1 << 22;
  const auto zeros = resolution.small_tensor(*tensor.zeros, kMost);
  if (!zeros || zeros->find_first_not_of('\0') != std::string::npos)
    return resolution.unknown_form(tensor, "zero points of INT8 that are not 0");
  tensor.auxiliary.push_back(*tensor.zeros);
  tensor.zeros.reset();
  resolve_scaled(resolution, tensor);
}

void resolve_quark(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  tensor.scale = group.place("weight_scale");
  tensor.zeros = group.place("weight_zero_point");
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  if (!tensor.scale || !tensor.zeros || group.pieces.size() != 2 + known_beside(tensor))
    return resolution.unknown_form(tensor);
  const QuantizationConfig::Group* settings = settings_of(resolution, tensor.name);
  if (settings == nullptr || settings->type.empty())
    return resolution.unknown_form(tensor,
                                   "only quantization_config tells what type Quark has packed, and it "
                                   "does not");
  const bool words =
      codes.type == ElementType::I32 && (settings->type == "int4" || settings->type == "uint4");
  const bool bytes = (codes.type == ElementType::I8 && settings->type == "int8") ||
                     (codes.type == ElementType::U8 && settings->type == "uint8");
  if (words || (bytes && settings->strategy == "per_group"))
    return resolve_packed(resolution, tensor, *settings);
  if (codes.type == ElementType::I8 && settings->type == "int8") return resolve_symmetric(resolution, tensor);
  resolution.unknown_form(tensor, fmt::format("Quark's {} is not read here", settings->type));
}

constexpr std::string_view kQuarkMethods[] = {"quark"};

bool claims_quark(const StoredResolution& resolution, const LogicalTensor&, const StoredGroup& group) {
  return group.plain && resolution.method() == "quark" && group.find("weight_zero_point") != nullptr;
}

// Small floats and small integers; what it stores as FP8 is told like that of others.
std::optional<WeightFormat> configured_quark(const QuantizationConfig& config) {
  if (config.method != "quark" || config.groups.empty()) return std::nullopt;
  const QuantizationConfig::Group& all = config.groups.front();
  if (all.type == "fp4" && all.strategy == "per_group" && all.group_size.value_or(32) == 32)
    return WeightFormat::in_blocks("mxfp4", "MXFP4: FP4, an E8M0 scale each 32", 4, 1, 32, 1);
  if (all.type != "int4" && all.type != "uint4") return std::nullopt;
  WeightFormat format = grouped_int(4, all.group_size.value_or(0));
  format.per_matrix_bytes = 0;
  format.zero_bits = format.bits;
  return format;
}

}  // namespace

const StoredFormat kQuark = {.name = "Quark",
                             .methods = kQuarkMethods,
                             .claims = claims_quark,
                             .resolve = resolve_quark,
                             .configured = configured_quark};

}  // namespace assay::formats
