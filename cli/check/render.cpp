#include "cli/check/render.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/json.h"
#include "core/system/text.h"

namespace assay {
namespace {

Style style_of(StageStatus status) {
  switch (status) {
    case StageStatus::passed: return Style::green;
    case StageStatus::failed: return Style::red;
    case StageStatus::unproven: return Style::yellow;
    case StageStatus::skipped: return Style::dim;
  }
  return Style::plain;
}

constexpr std::size_t kMostShown = 12;  // under a stage; the JSON has all

// What is worth a line under its stage: errors, then warnings.
void render_findings(const Findings& findings, const Output& output) {
  std::size_t shown = 0, left = 0;
  for (const Severity severity : {Severity::error, Severity::warning}) {
    for (const Finding& finding : findings) {
      if (finding.severity != severity) continue;
      if (shown++ < kMostShown)
        output.line("            " + to_line(finding));
      else
        ++left;
    }
  }
  if (left > 0) output.line(fmt::format("            … and {} findings more (--json)", left));
}

}  // namespace

std::size_t CheckReport::count(StageStatus status) const {
  return static_cast<std::size_t>(std::count_if(stages.begin(), stages.end(),
                                                [&](const Stage& stage) { return stage.status == status; }));
}

std::size_t CheckReport::warnings() const {
  std::size_t all = 0;
  for (const Stage& stage : stages) {
    all += static_cast<std::size_t>(
        std::count_if(stage.findings.begin(), stage.findings.end(),
                      [](const Finding& f) { return f.severity == Severity::warning; }));
  }
  return all;
}

bool CheckReport::good(bool strict) const {
  if (interrupted || count(StageStatus::failed) > 0) return false;
  return !strict || (count(StageStatus::unproven) == 0 && warnings() == 0);
}

std::string verdict_line(const CheckReport& report, bool strict) {
  std::string failed, unproven;
  for (const Stage& stage : report.stages) {
    if (stage.status == StageStatus::failed) failed += (failed.empty() ? "" : ", ") + stage.name;
    if (stage.status == StageStatus::unproven) unproven += (unproven.empty() ? "" : ", ") + stage.name;
  }
  std::string open = unproven.empty() ? "" : fmt::format("; unproven: {}", unproven);
  if (const std::size_t warnings = report.warnings(); warnings > 0)
    open += fmt::format("; {} warning{}", warnings, warnings == 1 ? "" : "s");
  if (report.interrupted) return "INTERRUPTED";
  if (!failed.empty()) return fmt::format("FAILED: {}{}", failed, open);
  const char* word = report.good(strict) ? "OK" : "FAILED (--strict)";
  return fmt::format("{}: {} of {} stages passed{}", word, report.count(StageStatus::passed),
                     report.stages.size(), open);
}

void render_text(const CheckReport& report, bool strict, const Output& output) {
  for (const Stage& stage : report.stages) {
    output.line(fmt::format(
        "{}  {:<9}  {}",
        styled(fmt::format("{:<8}", name(stage.status)), style_of(stage.status), output.colours()),
        stage.name, escape_for_terminal(stage.summary)));
    render_findings(stage.findings, output);
  }
  output.paint(verdict_line(report, strict), report.good(strict) ? Style::green : Style::red);
}

Json render_json(const CheckReport& report, bool strict) {
  Json stages = Json::array();
  for (const Stage& stage : report.stages)
    stages.push_back({{"name", stage.name},
                      {"status", name(stage.status)},
                      {"summary", stage.summary},
                      {"seconds", stage.seconds},
                      {"findings", to_json(stage.findings)},
                      {"detail", stage.detail}});
  return {{"schema", "assay.check/1"},
          {"path", report.path},
          {"verdict", report.interrupted    ? "interrupted"
                      : report.good(strict) ? "ok"
                                            : "failed"},
          {"stages", std::move(stages)}};
}

}  // namespace assay
