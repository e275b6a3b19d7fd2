// `assay repair FILE --from COPY`.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/not_empty.h"
#include "core/system/report.h"
#include "core/system/text.h"
#include "verify/repair.h"

namespace assay {
namespace {

struct RepairSettings {
  CommonOptions common;
  RepairOptions repair;
  std::string file, copy, manifest, sha256;
};

std::string_view outcome_name(RepairOutcome outcome) {
  switch (outcome) {
    case RepairOutcome::intact: return "intact";
    case RepairOutcome::repaired: return "repaired";
    case RepairOutcome::damaged: return "damaged";
    case RepairOutcome::interrupted: break;
  }
  return "interrupted";
}

std::string verdict(const RepairReport& report, const std::string& file) {
  const std::string name = escape_for_terminal(file);
  const std::string damage = fmt::format(
      "{} bytes in {} range{}{}", with_thousands(report.bytes), report.ranges.size(),
      report.ranges.size() == 1 ? "" : "s",
      report.surplus > 0 ? fmt::format(", {} bytes too long", with_thousands(report.surplus)) : "");
  const std::string proof = fmt::format("{} {} ({})", report.digest.kind_name(), report.digest.hex(),
                                        escape_for_terminal(describe(report.trust)));
  switch (report.outcome) {
    case RepairOutcome::intact: return fmt::format("{}: OK: nothing to repair; {}", name, proof);
    case RepairOutcome::repaired: return fmt::format("{}: REPAIRED: {}; verified: {}", name, damage, proof);
    case RepairOutcome::damaged: return fmt::format("{}: DAMAGED: {}; nothing was written", name, damage);
    case RepairOutcome::interrupted: break;
  }
  return fmt::format("{}: interrupted; it is as it was", name);
}

int exit_code(RepairOutcome outcome) {
  switch (outcome) {
    case RepairOutcome::damaged: return kExitCheckFailed;
    case RepairOutcome::interrupted: return kExitInterrupted;
    default: return kExitOk;
  }
}

int run_repair(RepairSettings& settings) {
  RepairOptions& options = settings.repair;
  options.jobs = settings.common.jobs;
  options.progress = settings.common.progress;
  if (!settings.manifest.empty()) options.find.manifest = settings.manifest;
  if (!settings.sha256.empty()) options.find.sha256 = settings.sha256;
  const RepairReport report = repair(settings.file, settings.copy, options);

  const Output output(settings.common.json);
  Json ranges = Json::array();
  for (const ByteRange& range : report.ranges) {
    output.line(http_range(range));
    ranges.push_back(http_range(range));
  }
  output.line(verdict(report, settings.file));
  output.json({{"schema", "assay.repair/1"},
               {"file", settings.file},
               {"from", settings.copy},
               {"outcome", outcome_name(report.outcome)},
               {"ranges", std::move(ranges)},
               {"bytes", report.bytes},
               {"surplus", report.surplus},
               {"digest_kind", report.digest.kind_name()},
               {"digest", report.digest.hex()},
               {"trust", trust_name(report.trust.source)}});
  return exit_code(report.outcome);
}

constexpr const char* kRepairExamples =
    "  assay repair model-00007.safetensors --from /mnt/peer/model-00007.safetensors\n"
    "  assay repair model.safetensors --from COPY --manifest m.json   a chunked manifest: COPY may be "
    "damaged elsewhere\n"
    "  assay repair model.safetensors --from COPY --dry-run           the damaged ranges, as curl -r takes "
    "them\n"
    "\nExit codes: 0 whole now, 1 damaged (--dry-run) or refused, 2 wrong usage or unreadable input, 130 "
    "interrupted.";

}  // namespace

void add_repair(CLI::App& program, Action& action) {
  auto settings = std::make_shared<RepairSettings>();
  CLI::App& command =
      *program.add_subcommand("repair", "Patch only the damaged ranges of a file from another copy");
  RepairSettings& s = *settings;
  command.add_option("FILE", s.file, "The damaged file")->required();
  command.add_option("--from", s.copy, "A copy that is good where FILE is not")
      ->required()
      ->type_name("COPY");
  command.add_option("--manifest", s.manifest, "Manifest that lists FILE, best a chunked one")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--sha256", s.sha256, "What FILE must hash to")->type_name("HEX")->check(not_empty());
  command.add_flag("--dry-run", s.repair.dry_run, "Print the damaged ranges and write nothing");
  add_common_options(command, s.common);
  set_examples(command, kRepairExamples);
  command.callback([settings, &action] { action = [settings] { return run_repair(*settings); }; });
}

}  // namespace assay
