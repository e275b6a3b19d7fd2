#include "kernels/gate/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <set>
#include <utility>

#include "core/numeric/simd_option.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/output_paths.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/cuda/runtime.h"
#include "kernels/gate/baseline.h"
#include "kernels/plugin/options.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

constexpr const char* kGateExamples =
    "  assay gate --baseline data/baselines/cpu.json\n"
    "  assay gate --baseline data/baselines/cpu.json --update     after a change that was meant\n"
    "  assay gate --baseline mine.json --plugin ./libmine.so      kernels of your own\n"
    "  assay gate --baseline data/baselines/cpu.json --junit gate.xml --html gate.html\n";

struct GateSettings {
  CommonOptions common;
  std::string baseline, ledger, junit, html, date;
  std::vector<std::string> only;  // parts of the declared set; empty: all
  bool update = false, allow_unrecorded = false;
  std::vector<GateSuite> suites;
  PluginOptions plugins;
};

bool wanted(const GateSettings& s, std::string_view part) {
  return s.only.empty() || std::find(s.only.begin(), s.only.end(), part) != s.only.end();
}

void check_parts(const GateSettings& s) {
  std::vector<std::string> known = {"kernels", "mutants"};
  for (const GateSuite& suite : s.suites) known.push_back(suite.name);
  for (const std::string& part : s.only) {
    if (std::find(known.begin(), known.end(), part) == known.end())
      throw Error::usage(fmt::format("the gate has no part '{}'", escape_for_terminal(part)))
          .remedy(fmt::format("it has {}", fmt::join(known, ", ")));
  }
}

// What is remembered of the parts that run.
Baseline part_of(const GateSettings& s, Baseline whole, bool gpu) {
  if (!wanted(s, "kernels")) whole.kernels.clear();
  if (!gpu) std::erase_if(whole.kernels, [](const auto& kernel) { return is_of_gpu(kernel.first); });
  if (!wanted(s, "mutants")) whole.mutants.clear();
  std::erase_if(whole.figures, [&](const auto& suite) { return !wanted(s, suite.first); });
  return whole;
}

// With what is remembered of the parts that did not.
Baseline completed(const GateSettings& s, Baseline now, const Baseline& before, bool gpu) {
  if (!wanted(s, "kernels")) now.kernels = before.kernels;
  for (const auto& kernel : before.kernels) {
    if (!gpu && is_of_gpu(kernel.first)) now.kernels.insert(kernel);
  }
  if (!wanted(s, "mutants")) now.mutants = before.mutants;
  for (const auto& [suite, record] : before.figures) {
    if (!wanted(s, suite)) now.figures[suite] = record;
  }
  return now;
}

// Faults are planted in the operations that are examined, and in the comparator.
std::string operations_of(const std::vector<KernelLabel>& kernels) {
  std::string names = "comparator";
  for (const KernelLabel& k : kernels) names += "|" + k.op;
  return "^(" + names + ")$";
}

// What was measured, and what could not be: a part that throws is a deviation, and the others are judged.
struct Measured {
  std::vector<CaseResult> cases;
  std::vector<MutantResult> mutants;
  SuiteResults suites;
  std::set<std::string> broken;  // parts
  std::vector<Deviation> errors;
};

// What the user asked for and cannot be stays the user's mistake.
template <class Measure>
void measure_part(Measured& measured, const std::string& part, Measure&& measure) {
  if (interrupted()) return;
  try {
    measure();
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    if (ours != nullptr && ours->kind() == ErrorKind::usage) throw;
    measured.broken.insert(part);
    measured.errors.push_back({"error", part, "", fmt::format("could not be run: {}", error.what()), false});
  }
}

Measured measure_all(const GateSettings& s, const Registry& registry, const SurveyRequest& request,
                     bool plugins) {
  Measured m;
  if (wanted(s, "kernels")) measure_part(m, "kernels", [&] { m.cases = run_survey(registry, request); });
  const std::string operations = plugins ? operations_of(wanted_kernels(registry, request)) : "";
  if (wanted(s, "mutants"))
    measure_part(m, "mutants", [&] { m.mutants = run_mutants(operations, s.common.jobs); });
  const fs::path data = fs::absolute(s.baseline).parent_path().parent_path();
  for (const GateSuite& suite : s.suites) {
    // Models, claims, caches and conversions do not run on plugins.
    if (plugins || !wanted(s, suite.name)) continue;
    measure_part(m, suite.name, [&] { m.suites[suite.name] = suite.run(data, s.common.jobs); });
  }
  return m;
}

// Entries of the ledger about a suite are the suite's; those about kernels count where these are examined.
std::vector<KnownFailure> of_kernels(const GateSettings& s, std::vector<KnownFailure> ledger, bool gpu) {
  std::erase_if(ledger, [&](const KnownFailure& known) {
    return !wanted(s, "kernels") || (!gpu && is_of_gpu(known.kernel)) ||
           std::any_of(s.suites.begin(), s.suites.end(),
                       [&](const GateSuite& suite) { return suite.name == known.kernel; });
  });
  return ledger;
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
SurveyRequest declared_set(bool gpu, int jobs, const std::vector<Plugin>& plugins) {
  if (!plugins.empty()) return {.op = "", .kernel = kernels_of(plugins), .cases = {}, .jobs = jobs};
  return {.op = "",
          .kernel = gpu ? "^(reference|cpu\\.|cuda\\.)" : "^(reference|cpu\\.)",
          .device = gpu ? std::nullopt : std::optional(Device::cpu),
          .cases = {},
          .seeds = 1,
          .every = 4,
          .jobs = jobs};
}

void print_found(const Output& output, const std::vector<Deviation>& found) {
  for (const Deviation& d : found) {
    const std::string where = d.kernel + (d.id.empty() ? "" : " " + d.id);
    output.paint(fmt::format("{}{}  {}", d.tolerated ? "known " : "", d.kind, escape_for_terminal(where)),
                 d.tolerated ? Style::dim : Style::red);
    output.line("  " + escape_for_terminal(d.message));
    // GitHub reads both streams, and stdout may be a JSON document's.
    if (!on_github()) continue;
    if (output.text_wanted())
      output.line(to_annotation(d));
    else
      write_message(to_annotation(d));
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

// A case that a kernel refuses says nothing of it.
bool was_examined(const CaseResult& r) {
  return r.status != CaseStatus::skipped && r.status != CaseStatus::unimplemented;
}

struct Verdict {
  std::size_t examined = 0, refused = 0, figures = 0, bad = 0, known = 0;
  double seconds = 0;
  bool ok() const { return bad == 0; }
};

Verdict verdict_of(const Measured& m, const std::vector<Deviation>& found, double seconds) {
  Verdict v;
  v.seconds = seconds;
  v.examined = static_cast<std::size_t>(std::count_if(m.cases.begin(), m.cases.end(), was_examined));
  v.refused = m.cases.size() - v.examined;
  for (const auto& [suite, all] : m.suites) v.figures += all.size();
  for (const Deviation& d : found) ++(d.tolerated ? v.known : v.bad);
  return v;
}

std::string line_of(const Verdict& v, const Baseline& now) {
  return fmt::format(
      "{}: {} kernels, {} cases ({} more refused by a kernel), {} planted faults caught, {} other figures; "
      "{} deviations, {} tolerated; {}",
      v.ok() ? "OK" : "FAILED", now.kernels.size(), v.examined, v.refused, now.mutants.size(), v.figures,
      v.bad, v.known, human_duration(v.seconds));
}

// Everything to say, in the order of the parts.
std::vector<Deviation> judged(const GateSettings& s, const Measured& m, const Baseline& before,
                              const Baseline& now, const std::vector<KnownFailure>& ledger, bool gpu) {
  const std::string day = s.date.empty() ? today() : s.date;
  Baseline then = s.update ? Baseline{} : part_of(s, before, gpu);
  for (const std::string& part : m.broken) {  // told as such, and not case by case as vanished
    if (part == "kernels") then.kernels.clear();
    if (part == "mutants") then.mutants.clear();
    then.figures.erase(part);
  }
  std::vector<Deviation> found = m.errors;
  const auto add = [&](std::vector<Deviation> more) {
    found.insert(found.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  const bool no_kernels = m.broken.contains("kernels");
  add(deviations(then, m.cases, m.mutants,
                 no_kernels ? std::vector<KnownFailure>{} : of_kernels(s, ledger, gpu), day));
  add(figure_deviations(then.figures, m.suites, ledger, day));
  for (const auto& [suite, record] : then.figures) {
    if (!m.suites.contains(suite))
      found.push_back({"vanished", suite, "", "the suite is run no more", false});
  }
  if (s.update) return found;
  std::vector<Deviation> unknown = unrecorded(then, now);
  for (Deviation& d : unknown) d.tolerated = d.tolerated || s.allow_unrecorded;
  add(std::move(unknown));
  return found;
}

Json gate_json(const Verdict& v, const Baseline& now, const std::vector<Deviation>& found,
               const std::string& line, const std::string& gpu_skipped) {
  return {{"schema", "assay.gate/1"},
          {"tool", "assay " ASSAY_VERSION},
          {"verdict", v.ok() ? "ok" : "failed"},
          {"verdict_line", line},
          {"deviations", found_json(found)},
          {"measured", to_json(now)},
          {"gpu_skipped", gpu_skipped},
          {"summary",
           {{"kernels", now.kernels.size()},
            {"cases", v.examined},
            {"refused", v.refused},
            {"mutants", now.mutants.size()},
            {"figures", v.figures},
            {"deviations", v.bad},
            {"known", v.known},
            {"seconds", v.seconds}}}};
}

// A baseline to be held against; nothing where one is to be written for the first time.
Baseline remembered(const GateSettings& s) {
  if (s.update && !fs::exists(s.baseline)) return {};
  Baseline before = read_baseline(s.baseline);
  if (before.empty() && !s.update)
    throw Error::input("the baseline records nothing to hold anything against")
        .in(s.baseline)
        .remedy("write one with 'assay gate --update'");
  return before;
}

int run_gate(const GateSettings& s) {
  const Output output(s.common.json);
  const auto start = std::chrono::steady_clock::now();
  const Baseline before = remembered(s);
  check_parts(s);
  check_outputs({s.junit, s.html, s.common.json, s.update ? s.baseline : ""});
  const std::vector<KnownFailure> ledger = ledger_of(s);
  if (!s.date.empty() && !is_day(s.date)) throw Error::usage("--today takes a day such as 2026-12-31");
  const std::string gpu = cuda::device_machine().unavailable();
  Registry registry = builtin_kernels();
  const std::vector<Plugin> plugins = add_plugins(registry, s.plugins);
  const SurveyRequest request = declared_set(gpu.empty(), s.common.jobs, plugins);
  refuse_without_device(plugins, wanted_kernels(registry, request));

  const Measured measured = measure_all(s, registry, request, !plugins.empty());
  if (interrupted()) return kExitInterrupted;
  Baseline now = baseline_of(measured.cases, measured.mutants);
  now.figures = records_of(measured.suites);
  const std::vector<Deviation> found = judged(s, measured, before, now, ledger, gpu.empty());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const Verdict verdict = verdict_of(measured, found, seconds.count());
  const std::string line = line_of(verdict, now);

  print_found(output, found);
  // Why kernels of a GPU that belong to the set were not examined.
  const std::string gpu_skipped = wanted(s, "kernels") && plugins.empty() ? gpu : "";
  if (!gpu_skipped.empty())
    output.paint("SKIPPED: kernels on the GPU were not examined: " + gpu_skipped, Style::yellow);
  // A failure is never written down as what ought to be.
  const bool written = s.update && verdict.ok();
  if (written) write_whole(s.baseline, dump_json(to_json(completed(s, now, before, gpu.empty()))) + "\n");
  write_whole(s.junit, to_junit(measured.cases, measured.suites, found));
  write_whole(s.html, to_html(before, now, found, line));
  output.paint(line + (written ? "; baseline written" : ""), verdict.ok() ? Style::green : Style::red);
  output.json(gate_json(verdict, now, found, line, gpu_skipped));
  return verdict.ok() ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_gate(CLI::App& program, Action& action, std::vector<GateSuite> suites) {
  auto settings = std::make_shared<GateSettings>();
  settings->suites = std::move(suites);
  GateSettings& s = *settings;
  CLI::App& command = *program.add_subcommand(
      "gate", "Fail where kernels, models, claims or conversions drifted from a baseline");
  command.add_option("--baseline", s.baseline, "What was measured when it was right")
      ->type_name("FILE")
      ->required();
  command.add_flag("--update", s.update,
                   "Write what is measured now as the baseline; refused where a kernel fails");
  command.add_flag("--allow-unrecorded", s.allow_unrecorded,
                   "Tell what is measured and not in the baseline, and do not fail for it");
  command
      .add_option("--ledger", s.ledger, "Known failures (default: known_failures.json beside the baseline)")
      ->type_name("FILE");
  command.add_option("--only", s.only, "These parts: kernels, mutants, models, claims, caches, conversions")
      ->type_name("PART,…")
      ->delimiter(',');
  command.add_option("--junit", s.junit, "Write JUnit XML")->type_name("FILE");
  command.add_option("--html", s.html, "Write a page")->type_name("FILE");
  command.add_option("--today", s.date, "Judge the ledger's days as of this one (default: today, UTC)")
      ->type_name("YYYY-MM-DD");
  add_plugin_options(command, s.plugins);
  add_isa_option(command);
  add_common_options(command, s.common);
  set_examples(command, kGateExamples);
  command.callback([settings, &action] {
    // Models, claims and conversions say nothing of a plugin.
    if (!settings->plugins.files.empty() && settings->only.empty()) settings->only = {"kernels", "mutants"};
    action = [settings] { return run_gate(*settings); };
  });
}

}  // namespace assay
