#include "kernels/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/gate_baseline.h"
#include "kernels/plugin/options.h"

namespace assay {
namespace {

constexpr const char* kExamples =
    "  assay gate --baseline data/baselines/cpu.json\n"
    "  assay gate --baseline data/baselines/cpu.json --update     after a change that was meant\n"
    "  assay gate --baseline mine.json --plugin ./libmine.so      kernels of your own\n"
    "  assay gate --baseline data/baselines/cpu.json --junit gate.xml --html gate.html\n";

struct GateSettings {
  CommonOptions common;
  std::string baseline, ledger, junit, html, date;
  bool update = false;
  PluginOptions plugins;
};

void write_text(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

std::vector<KnownFailure> ledger_of(const GateSettings& s) {
  const fs::path beside = fs::path(s.baseline).parent_path() / "known_failures.json";
  if (!s.ledger.empty()) return read_ledger(s.ledger);
  return fs::exists(beside) ? read_ledger(beside) : std::vector<KnownFailure>{};
}

bool on_github() {
  const char* value = std::getenv("GITHUB_ACTIONS");
  return value != nullptr && std::string_view(value) == "true";
}

// Our own kernels: what libraries do is not ours to promise, and they are not everywhere. Where there are
// plugins: theirs, and all of their cases.
SurveyRequest declared_set(int jobs, const std::vector<Plugin>& plugins) {
  if (!plugins.empty()) return {.op = "", .kernel = kernels_of(plugins), .cases = {}, .jobs = jobs};
  return {.op = "",
          .kernel = "^(reference|cpu\\.)",
          .device = Device::cpu,
          .cases = {},
          .seeds = 1,
          .every = 4,
          .jobs = jobs};
}

// Faults are planted in the operations that are examined, and in the comparator.
std::string operations_of(const std::vector<KernelLabel>& kernels) {
  std::string names = "comparator";
  for (const KernelLabel& k : kernels) names += "|" + k.op;
  return "^(" + names + ")$";
}

void print_found(const Output& output, const std::vector<Deviation>& found) {
  for (const Deviation& d : found) {
    const std::string where = d.kernel + (d.id.empty() ? "" : " " + d.id);
    output.paint(fmt::format("{}{}  {}", d.tolerated ? "known " : "", d.kind, escape_for_terminal(where)),
                 d.tolerated ? Style::dim : Style::red);
    output.line("  " + escape_for_terminal(d.message));
    if (on_github()) output.line(to_annotation(d));
  }
}

Json found_json(const std::vector<Deviation>& found) {
  Json list = Json::array();
  for (const Deviation& d : found)
    list.push_back({{"kind", d.kind},
                    {"kernel", d.kernel},
                    {"id", d.id},
                    {"message", d.message},
                    {"tolerated", d.tolerated}});
  return list;
}

int run_gate(const GateSettings& s) {
  const Output output(s.common.json);
  const auto start = std::chrono::steady_clock::now();
  const bool fresh = s.update && !fs::exists(s.baseline);
  const Baseline before = fresh ? Baseline{} : read_baseline(s.baseline);
  const std::vector<KnownFailure> ledger = ledger_of(s);
  Registry registry = builtin_kernels();
  const std::vector<Plugin> plugins = add_plugins(registry, s.plugins);
  const SurveyRequest request = declared_set(s.common.jobs, plugins);
  const std::vector<KernelLabel> kernels = wanted_kernels(registry, request);
  refuse_without_device(plugins, kernels);
  const std::vector<CaseResult> results = run_survey(registry, request);
  const std::vector<MutantResult> mutants =
      run_mutants(plugins.empty() ? "" : operations_of(kernels), s.common.jobs);
  if (interrupted()) return kExitInterrupted;
  const Baseline now = baseline_of(results, mutants);
  std::vector<Deviation> found =
      deviations(s.update ? Baseline{} : before, results, mutants, ledger, s.date.empty() ? today() : s.date);
  const auto bad = static_cast<std::size_t>(
      std::count_if(found.begin(), found.end(), [](const Deviation& d) { return !d.tolerated; }));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string verdict =
      fmt::format("{}: {} kernels, {} cases, {} planted faults caught; {} deviations, {} known failures; {}",
                  bad == 0 ? "OK" : "FAILED", now.kernels.size(), results.size(), now.mutants.size(), bad,
                  found.size() - bad, human_duration(seconds));
  print_found(output, found);
  // A failure is never written down as what ought to be.
  const bool written = s.update && bad == 0;
  if (written) write_text(s.baseline, dump_json(to_json(now)) + "\n");
  write_text(s.junit, to_junit(results, found));
  write_text(s.html, to_html(before, now, found, verdict));
  output.paint(verdict + (written ? "; baseline written" : ""), bad == 0 ? Style::green : Style::red);
  output.json({{"schema", "assay.gate/1"},
               {"tool", "assay " ASSAY_VERSION},
               {"verdict", bad == 0 ? "ok" : "failed"},
               {"verdict_line", verdict},
               {"deviations", found_json(found)},
               {"measured", to_json(now)},
               {"summary",
                {{"kernels", now.kernels.size()},
                 {"cases", results.size()},
                 {"mutants", now.mutants.size()},
                 {"deviations", bad},
                 {"known", found.size() - bad},
                 {"seconds", seconds}}}});
  return bad == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_gate(CLI::App& program, Action& action) {
  auto settings = std::make_shared<GateSettings>();
  GateSettings& s = *settings;
  CLI::App& command =
      *program.add_subcommand("gate", "Fail where kernels drifted from a checked-in baseline");
  command.add_option("--baseline", s.baseline, "What was measured when it was right")
      ->type_name("FILE")
      ->required();
  command.add_flag("--update", s.update,
                   "Write what is measured now as the baseline; refused where a kernel fails");
  command
      .add_option("--ledger", s.ledger, "Known failures (default: known_failures.json beside the baseline)")
      ->type_name("FILE");
  command.add_option("--junit", s.junit, "Write JUnit XML")->type_name("FILE");
  command.add_option("--html", s.html, "Write a page")->type_name("FILE");
  command.add_option("--today", s.date, "Judge the ledger's days as of this one (default: today, UTC)")
      ->type_name("YYYY-MM-DD");
  add_plugin_options(command, s.plugins);
  add_common_options(command, s.common);
  set_examples(command, kExamples);
  command.callback([settings, &action] { action = [settings] { return run_gate(*settings); }; });
}

}  // namespace assay
