#include "cli/check/fused.h"

#include <fmt/format.h>

#include <algorithm>

#include "convert/fused_errors.h"
#include "core/formats/checkpoint.h"
#include "core/system/error.h"

namespace assay {
namespace {

FusedReport report_on(const CheckSettings& settings) {
  const Checkpoint checkpoint = open_checkpoint(settings.path, settings.common.jobs);
  const StoredTensors stored = find_stored(checkpoint, read_quantization(checkpoint));
  const CheckpointReader reader(checkpoint);
  return find_fused_errors(reader, stored, settings.common.jobs);
}

}  // namespace

std::optional<Stage> examine_fused(const CheckSettings& settings) {
  Stage stage{.name = "fused", .status = StageStatus::passed};
  try {
    const FusedReport report = report_on(settings);
    if (report.sets == 0 && report.mixed.empty()) return std::nullopt;
    stage.findings = report.mixed;
    double largest = 0;
    for (const FusedError& error : report.errors) {
      stage.findings.push_back(to_finding(error));
      largest = std::max(largest, error.error);
    }
    stage.summary =
        report.errors.empty()
            ? fmt::format("{} sets that engines fuse, each under one scale", report.sets)
            : fmt::format("{} of {} sets that engines fuse have scales that differ: weights up to {:.3g} off",
                          report.errors.size(), report.sets, largest);
    stage.detail = {{"sets", report.sets}, {"differing", report.errors.size()}, {"largest_error", largest}};
    settle(stage);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return std::nullopt;  // said by the stages that read headers
  }
  return stage;
}

}  // namespace assay
