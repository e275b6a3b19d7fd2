#include "cli/check/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "core/model/open_model.h"
#include "core/model/said_form.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_names.h"
#include "core/model/zero_scales.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

// Weights of trained models stay far below this; raw codes taken for values, or a scale of another model, do
// not.
constexpr double kImplausibleWeight = 1e4;
// The largest value of a matrix, against the same matrix of other layers. Those of trained models are within
// an order of magnitude or two; a power of two that was lost or applied twice (2^-8, 448, 1e6) is not.
constexpr double kFarFromOtherLayers = 256;
constexpr std::size_t kEnoughLayers = 3;

// How the weights are stored, by name of the tensor that holds their scales, the scale of a whole tensor, the groups of
// their columns.
struct StoredScales {
  using ByName = std::map<std::string_view, const LogicalTensor*>;

  std::optional<OpenedModel> model;
  ByName by_scale, by_global, by_index;
  std::size_t not_understood = 0;  // matrices whose codes cannot be read

  explicit StoredScales(const CheckSettings& settings) {
    try {
      model.emplace(settings.path, settings.common.jobs);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      return;  // said by the stages that read headers
    }
    for (const LogicalTensor& tensor : model->stored.tensors) {
      const bool numbers = tensor.form.kind == FormKind::scaled || tensor.form.kind == FormKind::fp4 ||
                           tensor.form.kind == FormKind::packed;
      if (tensor.scale && numbers) by_scale.emplace(name_of(*tensor.scale), &tensor);
      if (tensor.global_scale) by_global.emplace(name_of(*tensor.global_scale), &tensor);
      if (tensor.group_index) by_index.emplace(name_of(*tensor.group_index), &tensor);
    }
    for (const Finding& finding : model->stored.findings) not_understood += hides_a_matrix(finding) ? 1 : 0;
  }

  static const LogicalTensor* find(const ByName& tensors, std::string_view name) {
    const auto at = tensors.find(name);
    return at == tensors.end() ? nullptr : at->second;
  }

 private:
  std::string_view name_of(std::uint32_t place) const { return model->checkpoint.tensors[place].name; }
  static bool hides_a_matrix(const Finding& finding) {
    constexpr std::array<std::string_view, 5> kCodes = {"stored.form_unknown", "stored.form_differs",
                                                        "stored.scale_missing", "stored.scale_shape",
                                                        "stored.scale_type"};
    return !finding.tensor.empty() && std::find(kCodes.begin(), kCodes.end(), finding.code) != kCodes.end();
  }
};

void say(Findings& findings, Severity severity, const char* code, std::string message,
         const TensorReport& tensor) {
  findings.push_back(
      {.severity = severity, .code = code, .message = std::move(message), .tensor = tensor.name});
}

void judge_scale(const TensorReport& tensor, const LogicalTensor& weight, const StoredScales& all,
                 Findings& findings) {
  if (!tensor.has_finite()) return;
  const double least = tensor.numbers->min, most = tensor.numbers->max;
  // MLX's are of either sign.
  if (weight.form.kind != FormKind::packed && least < 0)
    say(findings, Severity::error, "numbers.scale_negative",
        fmt::format("holds the scale {:.4g}, and scales are positive", least), tensor);
  if (weight.form.kind == FormKind::scaled) {
    const double largest_code = largest_code_value(weight.form.codes);
    if (most * largest_code > kImplausibleWeight)
      say(findings, Severity::error, "numbers.scale_large",
          fmt::format("its largest scale, {:.4g}, makes weights of {:.3g}", most, most * largest_code),
          tensor);
  }
  if (tensor.numbers->zero == 0) return;
  const ZeroScales zero = find_zero_scales(all.model->reader, weight);
  if (zero.over_codes == 0) return;
  say(findings, Severity::error, "numbers.scale_zero",
      fmt::format(
          "{} of its scales {} zero over codes that are not, the first over row {}, column {} of the weight",
          with_thousands(zero.over_codes), zero.over_codes == 1 ? "is" : "are", zero.first_row,
          zero.first_column),
      tensor);
}

bool holds_codes(const CheckpointReader& reader, const LogicalTensor& weight) {
  for (std::uint64_t row = 0; row < weight.slices * weight.scale_rows() && !interrupted(); ++row) {
    for (std::uint64_t column = 0; column < weight.scale_columns(); ++column)
      if (block_holds_codes(reader, weight, row, column)) return true;
  }
  return false;
}

// NVFP4's scale of a whole tensor: ModelOpt multiplies by it, compressed-tensors divides.
void judge_global_scale(const TensorReport& tensor, const LogicalTensor& weight, const StoredScales& all,
                        Findings& findings) {
  if (!tensor.has_finite()) return;
  if (tensor.numbers->min < 0)
    say(findings, Severity::error, "numbers.scale_negative",
        fmt::format("holds {:.4g}, the scale of a whole matrix, and scales are positive",
                    tensor.numbers->min),
        tensor);
  if (tensor.numbers->zero == 0) return;
  const bool divides = weight.form.global == GlobalScale::divide;
  if (!divides && !holds_codes(all.model->reader, weight)) return;
  say(findings, Severity::error, "numbers.scale_zero",
      divides ? "is zero, and the matrix is divided by it"
              : "is zero, and makes zeros of a matrix whose codes are not",
      tensor);
}

// GPTQ's g_idx: of every column the group whose scale it has. compressed-tensors fills with -1 what it does not use.
void judge_group_index(const TensorReport& tensor, const LogicalTensor& weight, Findings& findings) {
  if (!tensor.has_finite()) return;
  const double least = tensor.numbers->min, most = tensor.numbers->max;
  const auto groups = static_cast<double>(weight.scale_columns());
  if (least == -1 && most == -1 && tensor.name.ends_with("weight_g_idx")) return;
  if (least >= 0 && most < groups) return;
  say(findings, Severity::error, "numbers.group_index",
      fmt::format("places columns in group {:.0f} of a matrix whose groups are 0 to {:.0f}",
                  least < 0 ? least : most, groups - 1),
      tensor);
}

bool is_matrix(const TensorReport& tensor) {
  const std::vector<std::uint64_t>& shape = tensor.shape;
  return shape.size() >= 2 && shape.back() != 1 && shape[shape.size() - 2] != 1;
}

// Norms and biases may well be constant, and zero points of symmetric codes are; a matrix that is, multiplies
// everything alike.
void judge_constant(const TensorReport& tensor, Findings& findings) {
  const auto stored = parse_stored_name(tensor.name);
  if (stored && stored->part == StoredPart::zero_point) return;
  if (!is_matrix(tensor) || !tensor.has_finite() || tensor.numbers->min != tensor.numbers->max) return;
  if (tensor.numbers->finite() != tensor.numbers->count) return;
  if (tensor.numbers->max == 0) return;  // numbers.all_zero
  say(findings, Severity::warning, "numbers.constant",
      fmt::format("all {} values are {:.6g}", tensor.numbers->count, tensor.numbers->max), tensor);
}

void judge_large(const TensorReport& tensor, Findings& findings) {
  if (!is_plain_float(tensor.type) || !is_matrix(tensor) || !tensor.has_finite()) return;
  if (const double amax = tensor.numbers->amax; amax > kImplausibleWeight)
    say(findings, Severity::warning, "numbers.large", fmt::format("its largest value is {:.3g}", amax),
        tensor);
}

// "model.layers.#.mlp.experts.#.up_proj.weight": one name for the same matrix of every layer.
std::string of_any_layer(std::string_view name) {
  std::string general;
  for (std::size_t i = 0; i < name.size();) {
    const bool starts = i == 0 || name[i - 1] == '.';
    std::size_t end = i;
    while (starts && end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    const bool is_index = end > i && (end == name.size() || name[end] == '.');
    if (is_index) {
      general += '#';
      i = end;
    } else {
      general += name[i++];
    }
  }
  return general;
}

// Of codes, the scales tell how large the weight is; codes themselves reach their largest value in every
// block.
bool tells_a_size(const TensorReport& tensor, bool is_scale) {
  if (!tensor.has_finite() || tensor.numbers->amax <= 0) return false;
  return is_plain_float(tensor.type) && (is_scale || is_matrix(tensor));
}

using BySameName = std::map<std::string, std::vector<const TensorReport*>>;

void judge_against_other_layers(const BySameName& groups, Findings& findings) {
  for (const auto& [name, tensors] : groups) {
    if (tensors.size() < kEnoughLayers) continue;
    std::vector<double> sizes;
    for (const TensorReport* tensor : tensors) sizes.push_back(tensor->numbers->amax);
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::nth_element(sizes.begin(), middle, sizes.end());
    for (const TensorReport* tensor : tensors) {
      const double times = tensor->numbers->amax / *middle;
      if (times <= kFarFromOtherLayers && times >= 1 / kFarFromOtherLayers) continue;
      say(findings, Severity::warning, "numbers.scale_differs",
          fmt::format(
              "its largest value is {:.3g}, {:.3g} × the median of the same tensor of {} layers and experts",
              tensor->numbers->amax, times, tensors.size()),
          *tensor);
    }
  }
}

}  // namespace

Stage judge_all_numbers(const VerifyReport& report, const CheckSettings& settings) {
  Stage stage{.name = "numbers",
              .findings = pick(report, [](std::string_view code) { return code.starts_with("numbers."); })};
  if (settings.quick) {
    stage.summary = "not read (--quick)";
    return stage;
  }
  const StoredScales scales(settings);
  BySameName same;
  Findings of_wholes;  // often one fault of all matrices
  std::uint64_t tensors = 0, values = 0;
  for (const FileReport& file : report.files) {
    if (!file.tensors()) continue;
    for (const TensorReport& tensor : *file.tensors()) {
      if (!tensor.numbers) continue;
      ++tensors;
      values += tensor.numbers->count;
      const LogicalTensor* of_scale = StoredScales::find(scales.by_scale, tensor.name);
      const bool is_scale = of_scale != nullptr;
      if (is_scale) judge_scale(tensor, *of_scale, scales, stage.findings);
      if (const LogicalTensor* weight = StoredScales::find(scales.by_global, tensor.name))
        judge_global_scale(tensor, *weight, scales, of_wholes);
      if (const LogicalTensor* weight = StoredScales::find(scales.by_index, tensor.name))
        judge_group_index(tensor, *weight, of_wholes);
      if (!is_scale) judge_constant(tensor, stage.findings);
      if (!is_scale) judge_large(tensor, stage.findings);
      if (tells_a_size(tensor, is_scale)) same[of_any_layer(tensor.name)].push_back(&tensor);
    }
  }
  for (Finding& finding : told_once(std::move(of_wholes))) stage.findings.push_back(std::move(finding));
  judge_against_other_layers(same, stage.findings);
  stage.status = tensors > 0 ? StageStatus::passed : StageStatus::unproven;
  stage.summary = tensors > 0
                      ? fmt::format("{} values of {} tensors, {} of them scales", with_thousands(values),
                                    with_thousands(tensors), scales.by_scale.size())
                      : "no tensor was read";
  if (scales.not_understood > 0) {
    stage.status = StageStatus::unproven;
    stage.summary += fmt::format("; {} {} in no form that is read here", scales.not_understood,
                                 scales.not_understood == 1 ? "matrix is" : "matrices are");
  }
  settle(stage);
  return stage;
}

}  // namespace assay
