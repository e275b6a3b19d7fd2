#include "core/model/said_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/model/composed_tensor.h"
#include "core/model/module_patterns.h"
#include "core/model/quantized_layers.h"
#include "core/model/stored_checks.h"
#include "core/numeric/ceil_div.h"

namespace assay {
namespace {

using Codes = SaidForm::Codes;
using Packing = SaidForm::Packing;
using Grain = SaidForm::Grain;

constexpr std::uint64_t kNvfp4Group = 16, kMxGroup = 32;

SaidForm in_groups(Codes codes, std::uint64_t columns) {
  SaidForm form;
  form.codes = codes;
  form.grain = columns == 0 ? Grain::any : Grain::group;
  form.columns = columns;
  return form;
}

SaidForm fp8(Grain grain, std::uint64_t rows = 1, std::uint64_t columns = 1) {
  SaidForm form;
  form.codes = Codes::fp8;
  form.grain = grain;
  form.rows = rows, form.columns = columns;
  return form;
}

SaidForm integers(std::optional<std::uint64_t> bits, std::optional<std::uint64_t> group, bool whole_rows) {
  SaidForm form = in_groups(Codes::integers, whole_rows ? 0 : group.value_or(0));
  if (whole_rows) form.grain = Grain::row;
  form.bits = bits;
  return form;
}

// ModelOpt's quant_algo, of the whole model or of some layers.
std::optional<SaidForm> of_algorithm(std::string_view name, std::optional<std::uint64_t> group) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (has("NVFP4")) return in_groups(Codes::nvfp4, group.value_or(kNvfp4Group));
  if (has("MXFP4")) return in_groups(Codes::mxfp4, kMxGroup);
  if (name == "W4A16_AWQ" || name == "W4A8_AWQ" || name == "INT4_AWQ") return integers(4, group, false);
  if (name == "FP8_PER_CHANNEL_PER_TOKEN") return fp8(Grain::row);
  if (name == "FP8") return fp8(Grain::tensor);
  if (has("FP8_PB") || has("MXFP8")) return fp8(Grain::any);
  return std::nullopt;
}

std::optional<SaidForm> of_scheme(const QuantizationConfig::Group& group) {
  const bool by_row = group.strategy == "channel";
  if (group.type == "int" && group.bits) {
    SaidForm form = integers(group.bits, group.group_size, by_row || group.whole_rows);
    if (group.symmetric) form.zero_points = !*group.symmetric;
    return form;
  }
  if (group.type != "float" || !group.bits) return std::nullopt;
  if (*group.bits == 4) {
    const bool unnamed = group.strategy.empty() && group.group_size == kNvfp4Group;  // ModelOpt's
    if (group.format.starts_with("nvfp4") || group.strategy == "tensor_group" || unnamed)
      return in_groups(Codes::nvfp4, group.group_size.value_or(0));
    const bool powers_of_two = group.format.starts_with("mxfp4");
    return powers_of_two ? std::optional(in_groups(Codes::mxfp4, group.group_size.value_or(0)))
                         : std::nullopt;
  }
  if (*group.bits != 8) return std::nullopt;
  if (by_row) return fp8(Grain::row);
  if (group.strategy == "tensor") return fp8(Grain::tensor);
  if (group.block_rows && group.block_columns)
    return fp8(Grain::block, *group.block_rows, *group.block_columns);
  return fp8(Grain::any);
}

// All of `groups`, or nothing where one of them is not known.
template <typename Describe>
std::vector<SaidForm> of_each(const std::vector<QuantizationConfig::Group>& groups, Describe describe_one) {
  std::vector<SaidForm> forms;
  for (const auto& group : groups) {
    const auto form = describe_one(group);
    if (!form) return {};
    if (std::find(forms.begin(), forms.end(), *form) == forms.end()) forms.push_back(*form);
  }
  return forms;
}

std::vector<SaidForm> of_modelopt(const QuantizationConfig& config) {
  if (!config.layers.empty())
    return of_each(config.layers, [](const auto& g) { return of_algorithm(g.format, g.group_size); });
  if (const auto form = of_algorithm(config.format, config.group_size)) return {*form};
  // "MIXED_PRECISION" in the words of compressed-tensors, whose float groups have no strategy.
  return of_each(config.groups, [](const auto& g) { return of_scheme(g); });
}

std::vector<SaidForm> of_words(const QuantizationConfig& config) {
  const Packing packing = config.method == "awq" ? Packing::awq : Packing::gptq;
  std::vector<SaidForm> forms = {integers(config.bits, config.group_size, config.whole_rows)};
  for (const auto& module : config.modules)
    forms.push_back(integers(module.bits, module.group_size, module.whole_rows));
  for (SaidForm& form : forms) form.packing = packing;
  return forms;
}

bool serves_rows(const LogicalTensor& t) {
  return t.form.block_rows == 1 && t.form.block_columns == t.columns;
}

// Two matrices in one with a scale each serve as much.
bool serves_a_matrix(const LogicalTensor& t) {
  return t.form.block_columns == t.columns &&
         (t.form.block_rows == t.rows || 2 * t.form.block_rows == t.rows);
}

bool has_grain(const SaidForm& said, const LogicalTensor& t) {
  switch (said.grain) {
    case Grain::any: return true;
    case Grain::tensor: return serves_a_matrix(t);
    case Grain::row:  // stacked experts that lie [inputs, outputs] have columns for it
      return serves_rows(t) || (t.slices > 1 && t.form.block_columns == 1 && t.form.block_rows == t.rows);
    case Grain::block:
      return t.scale_rows() == ceil_div(t.rows, said.rows) &&
             t.scale_columns() == ceil_div(t.columns, said.columns);
    case Grain::group:
      return t.form.block_rows == 1 && t.scale_columns() == ceil_div(t.columns, said.columns);
    case Grain::not_rows: return t.rows == 1 || !serves_rows(t);
  }
  return true;
}

std::string grain_text(const SaidForm& form) {
  switch (form.grain) {
    case Grain::any: return "";
    case Grain::not_rows:
    case Grain::tensor: return " with a scale a matrix";
    case Grain::row: return " with a scale a row";
    case Grain::block: return fmt::format(" in blocks of {}x{}", form.rows, form.columns);
    case Grain::group: return fmt::format(" in groups of {}", form.columns);
  }
  return "";
}

std::string described(const std::vector<SaidForm>& forms) {
  std::string text;
  constexpr std::size_t kNamed = 3;
  for (std::size_t i = 0; i < std::min(forms.size(), kNamed); ++i)
    text += (i == 0 ? "" : " or ") + describe(forms[i]);
  return text;
}

bool lacks_global_scale(const Checkpoint& checkpoint, const LogicalTensor& tensor,
                        const QuantizationConfig& config) {
  const bool has_them =
      config.method == "modelopt" || config.method == "compressed-tensors" || mixed_over_blocks(config);
  return has_them && !tensor.global_scale && checkpoint.tensors[tensor.codes].type != ElementType::U32;
}

}  // namespace

std::vector<SaidForm> said_forms(const QuantizationConfig& config) {
  if (config.method == "gptq" || config.method == "awq") return of_words(config);
  if (config.method == "modelopt") return of_modelopt(config);
  if (config.method == "compressed-tensors") {
    return of_each(config.groups, [&](QuantizationConfig::Group group) {
      if (group.format.empty()) group.format = config.format;
      return of_scheme(group);
    });
  }
  if (config.method != "fp8") return {};
  if (!config.block_rows || !config.block_columns) return {fp8(Grain::not_rows)};
  std::vector<SaidForm> forms =
      of_each(config.layers, [](const auto& layer) { return of_algorithm(layer.format, layer.group_size); });
  if (forms.empty() && mixed_over_blocks(config)) return {};
  forms.push_back(fp8(Grain::block, *config.block_rows, *config.block_columns));
  return forms;
}

std::optional<SaidForm> held_form(const LogicalTensor& t) {
  const FormDetails& details = details_of(t);
  if (details.decode != nullptr || !details.parts.empty() || is_put_together(t) || t.elements() == 0)
    return std::nullopt;
  SaidForm held;
  switch (t.form.kind) {
    case FormKind::plain:
    case FormKind::codebook: return std::nullopt;
    case FormKind::fp4:
      return t.form.scales == ElementType::F8_E8M0 ? in_groups(Codes::mxfp4, kMxGroup)
                                                   : in_groups(Codes::nvfp4, kNvfp4Group);
    case FormKind::packed:
      held.bits = t.form.packed.codes.bits;
      held.packing = t.form.packed.codes.fill == IntPacking::Fill::awq ? Packing::awq
                     : t.form.packed.codes_across                      ? Packing::gptq
                                                                       : Packing::any;
      if (held.packing == Packing::any) held.zero_points = t.zeros.has_value();
      break;
    case FormKind::scaled:
      if (is_one_byte_float(t.form.codes)) held.codes = Codes::fp8;
  }
  held.rows = t.form.block_rows, held.columns = t.form.block_columns;
  held.grain = serves_rows(t)           ? Grain::row
               : serves_a_matrix(t)     ? Grain::tensor
               : t.form.block_rows == 1 ? Grain::group
                                        : Grain::block;
  return held;
}

bool agrees(const SaidForm& said, const LogicalTensor& tensor) {
  const auto held = held_form(tensor);
  if (!held) return true;
  if (held->codes != said.codes || !has_grain(said, tensor)) return false;
  const auto differ = [](const auto& a, const auto& b) { return a && b && *a != *b; };
  if (differ(said.bits, held->bits) || differ(said.zero_points, held->zero_points)) return false;
  return said.packing == Packing::any || held->packing == said.packing ||
         tensor.form.kind != FormKind::packed;
}

std::string describe(const SaidForm& form) {
  std::string text = form.packing == Packing::gptq ? "GPTQ " : form.packing == Packing::awq ? "AWQ " : "";
  switch (form.codes) {
    case Codes::fp8: text += "FP8"; break;
    case Codes::nvfp4: text += "NVFP4"; break;
    case Codes::mxfp4: text += "MXFP4"; break;
    case Codes::integers: text += form.bits ? fmt::format("INT{}", *form.bits) : "integers"; break;
  }
  text += grain_text(form);
  if (form.zero_points) text += *form.zero_points ? ", with zero points" : ", symmetric";
  return text;
}

Finding form_fault(const std::string& tensor, std::string_view said, std::string_view held) {
  return tensor_error("stored.form_differs", tensor,
                      fmt::format("quantization_config says {}, and the file holds {}", said, held),
                      "make quantization_config say what is stored, or take the weights that it is of");
}

Findings hold_against_config(const Checkpoint& checkpoint, const StoredTensors& stored,
                             const QuantizationConfig& config) {
  const std::vector<SaidForm> said = said_forms(config);
  if (said.empty()) return {};
  const ModulePatterns ignored(config.ignored);
  Findings findings;
  for (const LogicalTensor& tensor : stored.tensors) {
    const auto held = held_form(tensor);
    // DeepSeek-V4's experts, of which its config may be silent.
    const bool beside_fp8 = config.method == "fp8" && held && held->codes == Codes::mxfp4;
    if (!held || beside_fp8) continue;
    const std::string& name = checkpoint.tensors[tensor.codes].name;
    if (held->codes == Codes::nvfp4 && lacks_global_scale(checkpoint, tensor, config))
      findings.push_back(tensor_error(
          "stored.scale_missing", name,
          fmt::format("is NVFP4 without {}, the scale of the whole tensor: its values cannot be known",
                      name.ends_with("weight_packed") ? "weight_global_scale" : "weight_scale_2"),
          "take the file that holds it"));
    const bool same = std::any_of(said.begin(), said.end(), [&](const auto& s) { return agrees(s, tensor); });
    if (ignored.size() > 0 && ignored.name(tensor.name)) {
      Finding finding = tensor_error(
          "stored.exempt_quantized", name,
          fmt::format(
              "is {}, and quantization_config leaves its module out: engines expect plain weights there",
              describe(*held)),
          "take the module out of the list of those that are not quantized");
      // In another form it may be what an engine knows of: layers kept as the original had them.
      if (!same) finding.severity = Severity::warning;
      findings.push_back(std::move(finding));
    } else if (!same) {
      findings.push_back(form_fault(name, described(said), describe(*held)));
    }
  }
  return told_once(std::move(findings));
}

Findings told_once(Findings findings) {
  constexpr std::array<std::string_view, 7> kCodes = {
      "stored.form_differs",    "stored.exempt_quantized", "stored.scale_missing", "model.plain_undeclared",
      "numbers.scale_negative", "numbers.scale_zero",      "numbers.group_index"};
  std::map<std::pair<std::string, std::string>, std::size_t> first_of, others;
  Findings kept;
  for (Finding& finding : findings) {
    const bool is_collected = std::find(kCodes.begin(), kCodes.end(), finding.code) != kCodes.end();
    const auto key = std::pair(finding.code, finding.message);
    if (is_collected && !first_of.try_emplace(key, kept.size()).second)
      ++others[key];
    else
      kept.push_back(std::move(finding));
  }
  for (const auto& [key, count] : others)
    kept[first_of[key]].message +=
        fmt::format("; {} other {} alike", count, count == 1 ? "tensor is" : "tensors are");
  return kept;
}

}  // namespace assay
