#include "cli/check/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "cli/check/numbers.h"
#include "cli/check/stored_twice.h"
#include "core/model/reconcile_layers.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "paramcount/paramcount.h"
#include "verify/render.h"
#include "verify/verify.h"

namespace assay {
namespace {

struct Silent : VerifyObserver {};

bool failed(FileStatus status) {
  return status == FileStatus::failed || status == FileStatus::missing || status == FileStatus::unreadable;
}

Finding of_file(const FileReport& file) {
  return {.code = fmt::format("bytes.{}", status_name(file.status)),
          .message = std::string(file.diagnosis().empty() ? status_name(file.status) : file.diagnosis()),
          .file = file.name,
          .remedy = std::string(file.remedy())};
}

Stage judge_bytes(const VerifyReport& report, const VerifyOptions& options) {
  Stage stage{.name = "bytes"};
  for (const FileReport& file : report.files) {
    if (failed(file.status)) stage.findings.push_back(of_file(file));
  }
  // A weight that nobody vouches for leaves the whole unproven.
  const bool proven = !options.quick && report.bytes_checked && weight_share(report).all_compared();
  stage.status = proven ? StageStatus::passed : StageStatus::unproven;
  stage.summary = fmt::format("{}: {}", report.expectation.kind, verdict_line(report, options));
  if (stage.status == StageStatus::unproven && stage.findings.empty() &&
      verdict_of(report) != Verdict::partial)
    stage.summary = options.quick ? "not read (--quick)"
                                  : "nobody here says what these bytes should be; give --manifest FILE";
  settle(stage);
  return stage;
}

Stage judge_structure(const VerifyReport& report) {
  Stage stage{.name = "structure", .status = StageStatus::passed};
  // Identity is a stage of its own, and numbers another.
  stage.findings = pick(report, [](std::string_view code) {
    return !code.starts_with("numbers.") && !code.starts_with("model.") && !code.starts_with("stored.");
  });
  stage.summary =
      fmt::format("headers and index of {} file{}", report.files.size(), report.files.size() == 1 ? "" : "s");
  settle(stage);
  return stage;
}

// INT8 by channel is loaded by an engine's option (SGLang's w8a8_int8), for which config.json has no word.
void excuse_undeclared_int8(const Reconciliation& found, Findings& findings) {
  const bool fp8 = found.types.contains(ElementType::F8_E4M3) || found.types.contains(ElementType::F8_E5M2);
  if (fp8 || !found.types.contains(ElementType::I8)) return;
  for (Finding& finding : findings) {
    if (finding.code == "model.quantization_undeclared") finding.severity = Severity::warning;
  }
}

// What nobody could describe may be described here, and only its config not be one.
std::optional<Finding> contradicted_layers(const CheckSettings& settings) {
  try {
    return find_contradicted_layers(open_checkpoint(settings.path, settings.common.jobs));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return std::nullopt;  // said already
  }
}

std::vector<TensorDigest> digests_of(const VerifyReport& report) {
  std::vector<TensorDigest> digests;
  for (const FileReport& file : report.files) {
    if (!file.tensors()) continue;
    for (const TensorReport& tensor : *file.tensors()) {
      if (tensor.sha256)
        digests.push_back({tensor.name, std::string(name(tensor.type)), tensor.sha256->hex(), tensor.shape});
    }
  }
  return digests;
}

}  // namespace

std::string_view name(StageStatus status) {
  switch (status) {
    case StageStatus::passed: return "PASSED";
    case StageStatus::failed: return "FAILED";
    case StageStatus::unproven: return "UNPROVEN";
    case StageStatus::skipped: return "SKIPPED";
  }
  return "";
}

// Findings of one kind, by the first word of their code; those of files carry the file's name.
Findings pick(const VerifyReport& report, const std::function<bool(std::string_view)>& wanted) {
  Findings picked;
  for (const Finding& finding : report.findings) {
    if (wanted(finding.code)) picked.push_back(finding);
  }
  for (const FileReport& file : report.files) {
    for (const Finding& finding : file.findings()) {
      if (!wanted(finding.code)) continue;
      picked.push_back(finding);
      if (picked.back().file.empty()) picked.back().file = file.name;
    }
  }
  return picked;
}

void settle(Stage& stage) {
  if (has_errors(stage.findings)) stage.status = StageStatus::failed;
}

FileStages examine_files(const CheckSettings& settings, bool tensor_digests) {
  VerifyOptions options;
  if (!settings.manifest.empty()) options.find.manifest = settings.manifest;
  for (const std::string* own : {&settings.golden, &settings.record, &settings.html, &settings.manifest}) {
    if (!own->empty()) options.own_files.emplace_back(*own);
  }
  options.quick = settings.quick;
  options.numbers = !settings.quick;
  options.allow_nonfinite = settings.allow_nonfinite;
  options.tensor_digests = tensor_digests && !settings.quick;
  options.jobs = settings.common.jobs;
  options.progress = settings.common.progress;
  options.keep_cache = true;  // the forward pass reads it again
  Silent silent;
  const VerifyReport report = verify(settings.path, options, silent);
  FileStages stages{.bytes = judge_bytes(report, options),
                    .structure = judge_structure(report),
                    .numbers = judge_all_numbers(report, settings),
                    .digests = digests_of(report),
                    .interrupted = report.interrupted};
  stages.bytes.seconds = report.seconds;
  stages.bytes.detail = {{"bytes_hashed", report.bytes_hashed}, {"files", report.files.size()}};
  return stages;
}

Stage examine_identity(const CheckSettings& settings) {
  Stage stage{.name = "identity"};
  try {
    const Model model = load_model(settings.path, settings.common.jobs);
    stage.findings = model.findings;
    if (model.reconciliation) excuse_undeclared_int8(*model.reconciliation, stage.findings);
    if (!settings.quick) {
      const Findings twice = compare_stored_twice(model, settings.common.progress);
      stage.findings.insert(stage.findings.end(), twice.begin(), twice.end());
    }
    if (!model.reconciliation) {
      stage.status = StageStatus::unproven;
      stage.summary = "no weights whose headers could be compared with the config";
    } else {
      const Reconciliation& found = *model.reconciliation;
      // What headers say is no proof of what headers say.
      stage.status = model.tree.derived ? StageStatus::unproven : StageStatus::passed;
      stage.summary =
          model.tree.derived
              ? fmt::format("derived: {} parameters by the headers alone, and nothing to compare them with",
                            with_thousands(model.totals.total))
              : fmt::format("{}: {} parameters; {} elements stored, difference {}", model.tree.family,
                            with_thousands(model.totals.total), with_thousands(found.stored.elements),
                            found.difference);
      stage.detail = {{"family", model.tree.family},
                      {"parameters", model.totals.total},
                      {"stored", found.stored.elements},
                      {"difference", found.difference}};
      if (found.difference != 0 && found.complete() && !has_errors(stage.findings))
        stage.findings.push_back(
            {.code = "model.difference",
             .message = fmt::format("the headers hold {} elements more than the config asks for",
                                    found.difference)});
    }
    settle(stage);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    stage.status = StageStatus::unproven;
    stage.summary = "not compared: " + error.line();
    if (auto found = contradicted_layers(settings)) stage.findings.push_back(std::move(*found));
    settle(stage);
  }
  return stage;
}

}  // namespace assay
