#include "cli/check/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "core/model/open_model.h"
#include "core/model/stored_checks.h"
#include "core/model/zero_scales.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

// Weights of trained models stay far below this; raw codes taken for values, or a scale of another model, do
// not.
constexpr double kImplausibleWeight = 1e4;
// The largest value of a matrix, against the same matrix of other layers. Those of trained models are within
// an order of magnitude or two; a power of two that was lost or applied twice (2^-8, 448, 1e6) is not.
constexpr double kFarFromOtherLayers = 256;
constexpr std::size_t kEnoughLayers = 3;

// How the weights are stored, by name of the tensor that holds their scales.
struct StoredScales {
  std::optional<OpenedModel> model;
  std::map<std::string_view, const LogicalTensor*> by_scale;

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
      if (tensor.scale && numbers) by_scale.emplace(model->checkpoint.tensors[*tensor.scale].name, &tensor);
    }
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
  if (weight.form.kind == FormKind::scaled) {
    const double largest_code = largest_code_value(weight.form.codes);
    if (least < 0)
      say(findings, Severity::error, "numbers.scale_negative",
          fmt::format("holds the scale {:.4g}, and scales are positive", least), tensor);
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

bool is_matrix(const TensorReport& tensor) {
  const std::vector<std::uint64_t>& shape = tensor.shape;
  return shape.size() >= 2 && shape.back() != 1 && shape[shape.size() - 2] != 1;
}

// Norms and biases may well be constant; a matrix that is, multiplies everything alike.
void judge_constant(const TensorReport& tensor, Findings& findings) {
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
  std::uint64_t tensors = 0, values = 0;
  for (const FileReport& file : report.files) {
    if (!file.tensors()) continue;
    for (const TensorReport& tensor : *file.tensors()) {
      if (!tensor.numbers) continue;
      ++tensors;
      values += tensor.numbers->count;
      const auto scale = scales.by_scale.find(tensor.name);
      const bool is_scale = scale != scales.by_scale.end();
      if (is_scale) judge_scale(tensor, *scale->second, scales, stage.findings);
      if (!is_scale) judge_constant(tensor, stage.findings);
      if (!is_scale) judge_large(tensor, stage.findings);
      if (tells_a_size(tensor, is_scale)) same[of_any_layer(tensor.name)].push_back(&tensor);
    }
  }
  judge_against_other_layers(same, stage.findings);
  stage.status = tensors > 0 ? StageStatus::passed : StageStatus::unproven;
  stage.summary = tensors > 0
                      ? fmt::format("{} values of {} tensors, {} of them scales", with_thousands(values),
                                    with_thousands(tensors), scales.by_scale.size())
                      : "no tensor was read";
  settle(stage);
  return stage;
}

}  // namespace assay
