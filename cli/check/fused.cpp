#include "cli/check/fused.h"

#include <fmt/format.h>

#include <algorithm>

#include "convert/fused_errors.h"
#include "convert/fused_inputs.h"
#include "core/model/open_model.h"
#include "core/system/error.h"

namespace assay {
namespace {

struct Fused {
  FusedReport weights;
  FusedInputs inputs;
  bool nothing() const { return weights.sets == 0 && weights.mixed.empty() && inputs.sets == 0; }
};

Fused fused_sets_of(const CheckSettings& settings) {
  const OpenedModel model(settings.path, settings.common.jobs);
  return {find_fused_errors(model.reader, model.stored, settings.common.jobs),
          find_fused_inputs(model.reader, model.stored)};
}

std::string summary_of(const Fused& fused, double largest) {
  const FusedReport& weights = fused.weights;
  if (weights.sets == 0 && weights.mixed.empty() && fused.inputs.differing.empty())
    return fmt::format("{} sets that engines fuse, each under one scale of inputs", fused.inputs.sets);
  std::string text =
      weights.errors.empty()
          ? fmt::format("{} sets that engines fuse, each under one scale", weights.sets)
          : fmt::format("{} of {} sets that engines fuse have scales that differ: weights up to {:.3g} off",
                        weights.errors.size(), weights.sets, largest);
  if (!fused.inputs.differing.empty())
    text += fmt::format("; {} of {} sets have scales of inputs that differ", fused.inputs.differing.size(),
                        fused.inputs.sets);
  return text;
}

}  // namespace

std::optional<Stage> examine_fused(const CheckSettings& settings) {
  Stage stage{.name = "fused", .status = StageStatus::passed};
  try {
    const Fused fused = fused_sets_of(settings);
    const FusedReport& report = fused.weights;
    if (fused.nothing()) return std::nullopt;
    stage.findings = report.mixed;
    double largest = 0;
    for (const FusedError& error : report.errors) {
      stage.findings.push_back(to_finding(error));
      largest = std::max(largest, error.error);
    }
    double factor = 1;
    for (const FusedInput& input : fused.inputs.differing) {
      stage.findings.push_back(to_finding(input));
      factor = std::max(factor, input.factor);
    }
    stage.summary = summary_of(fused, largest);
    stage.detail = {{"sets", report.sets},
                    {"differing", report.errors.size()},
                    {"largest_error", largest},
                    {"input_sets", fused.inputs.sets},
                    {"input_differing", fused.inputs.differing.size()},
                    {"largest_input_factor", factor}};
    settle(stage);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return std::nullopt;  // said by the stages that read headers
  }
  return stage;
}

}  // namespace assay
