#include "kernels/compare/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/output_paths.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

struct StatusCounts {
  std::size_t passed = 0, failed = 0, mistrusted = 0, skipped = 0, unimplemented = 0;
};

StatusCounts count(const std::vector<CaseResult>& results) {
  StatusCounts totals;
  for (const CaseResult& r : results) {
    switch (r.status) {
      case CaseStatus::passed: ++totals.passed; break;
      case CaseStatus::failed: ++totals.failed; break;
      case CaseStatus::mistrusted: ++totals.mistrusted; break;
      case CaseStatus::skipped: ++totals.skipped; break;
      case CaseStatus::unimplemented: ++totals.unimplemented; break;
    }
  }
  return totals;
}

// One line for each operation that the device has no kernel for.
void add_unimplemented(const SurveyRequest& request, std::vector<CaseResult>& results) {
  if (!request.kernel.empty() || !request.cases.empty()) return;
  const Device device = request.device.value_or(Device::cpu);
  for (const std::string& op : unimplemented(builtin_kernels(), request, device)) {
    CaseResult& r = results.emplace_back();
    r.id = op;
    r.kernel = name(device);
    r.device = device;
    r.status = CaseStatus::unimplemented;
    r.detail = fmt::format("{} has no kernel of its own for {}: the reference computes it", name(device), op);
  }
}

// Ours and the plugins'. Where no kernels are named, it is the plugins' that are meant.
Registry registry_for(CompareKernelsSettings& s, std::vector<Plugin>& plugins) {
  Registry registry = builtin_kernels();
  if (s.plugins.files.empty()) return registry;
  plugins = add_plugins(registry, s.plugins);
  if (s.request.kernel.empty()) s.request.kernel = kernels_of(plugins);
  return registry;
}

void note_plugins(const std::vector<Plugin>& plugins, std::vector<CaseResult>& results) {
  for (CaseResult& r : results) {
    if (const Plugin* plugin = plugin_of(plugins, r.kernel)) r.plugin = plugin->file.string();
  }
}

int list_kernels(const Registry& registry, const CompareKernelsSettings& s, const Output& output) {
  const std::vector<KernelLabel> kernels = wanted_kernels(registry, s.request);
  if (output.text_wanted()) print_list(output, kernels);
  Json list = Json::array();
  for (const KernelLabel& k : kernels)
    list.push_back({{"op", k.op},
                    {"kernel", k.name},
                    {"device", name(k.device)},
                    {"about", k.about},
                    {"unavailable", k.unavailable.empty() ? Json() : Json(k.unavailable)}});
  output.json(
      {{"schema", "assay.compare/1"}, {"tool", "assay " ASSAY_VERSION}, {"kernels", std::move(list)}});
  return kExitOk;
}

int show_mutants(const CompareKernelsSettings& s, const Output& output) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<MutantResult> results = run_mutants(s.request.op, s.request.jobs);
  if (interrupted()) return kExitInterrupted;
  const auto caught = static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [](const MutantResult& r) { return r.caught; }));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool good = caught == results.size();
  const std::string verdict = fmt::format("{}: {} of {} planted faults caught; {}", good ? "OK" : "FAILED",
                                          caught, results.size(), human_duration(seconds));
  if (output.text_wanted()) {
    print_mutants(output, results);
    output.paint(verdict, good ? Style::green : Style::red);
  }
  Json list = Json::array();
  for (const MutantResult& r : results) list.push_back(to_json(r));
  output.json({{"schema", "assay.compare/1"},
               {"tool", "assay " ASSAY_VERSION},
               {"verdict", good ? "ok" : "failed"},
               {"verdict_line", verdict},
               {"mutants", std::move(list)},
               {"summary", {{"planted", results.size()}, {"caught", caught}, {"seconds", seconds}}}});
  return good ? kExitOk : kExitCheckFailed;
}

// What does not go together is refused: left out without a word, it would look like done.
void refuse_contradictions(const CompareKernelsSettings& s) {
  if (s.list + s.mutants + s.perf + s.dry_run + !s.tune.empty() > 1)
    throw Error::usage("--list, --mutants, --perf, --tune and --dry-run exclude one another");
  if (!s.tune.empty() && (!s.request.op.empty() || !s.request.kernel.empty() || !s.request.cases.empty()))
    throw Error::usage("--tune times products of its own: --op, --kernel and --case do not go with it");
  if (s.sm != 0 && !s.dry_run) throw Error::usage("--sm goes with --dry-run");
  if (s.dry_run && s.request.device == Device::cpu)
    throw Error::usage("--dry-run plans launches on GPUs, --device cpu has none");
  if (s.mutants &&
      (!s.request.kernel.empty() || s.request.device || !s.request.cases.empty() || !s.plugins.files.empty()))
    throw Error::usage(
        "--mutants plants faults in right computations of its own: of the kernels and cases, only --op "
        "chooses");
  if (!s.csv.empty() && (s.list || s.mutants || s.dry_run || !s.tune.empty()))
    throw Error::usage("--csv goes with the examination and with --perf").remedy("--json has all of it");
}

}  // namespace

int run_compare_kernels(const CompareKernelsSettings& asked) {
  CompareKernelsSettings s = asked;
  const Output output(s.common.json);
  refuse_contradictions(s);
  check_outputs({s.csv, s.tune, s.common.json});
  std::vector<Plugin> plugins;
  const Registry registry = registry_for(s, plugins);
  for (const Plugin& plugin : plugins) {
    if (!plugin.remark.empty())
      write_message(fmt::format("note: {}: {}", escape_for_terminal(plugin.file.string()),
                                escape_for_terminal(plugin.remark)));
  }
  if (s.list) return list_kernels(registry, s, output);
  if (s.mutants) return show_mutants(s, output);
  if (s.dry_run) return run_compare_plans(s);
  refuse_without_device(plugins, wanted_kernels(registry, s.request));
  if (s.perf) return run_compare_perf(registry, s);
  if (!s.tune.empty()) return run_compare_tune(registry, s);
  const auto start = std::chrono::steady_clock::now();
  std::vector<CaseResult> results;
  if (!wanted_kernels(registry, s.request).empty() || !s.request.device)
    results = run_survey(registry, s.request);
  note_plugins(plugins, results);
  if (interrupted()) return kExitInterrupted;
  add_unimplemented(s.request, results);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const StatusCounts totals = count(results);
  const bool good = totals.failed == 0 && totals.mistrusted == 0;
  const bool nothing_ran = std::all_of(results.begin(), results.end(), [](const CaseResult& r) {
    return r.check == kUnavailable || r.status == CaseStatus::unimplemented;
  });
  const std::string verdict =
      fmt::format("{}: {} passed, {} failed, {} mistrusted, {} not taken by the kernel, {} unimplemented; {}",
                  !good         ? "FAILED"
                  : nothing_ran ? "SKIPPED"
                                : "OK",
                  totals.passed, totals.failed, totals.mistrusted, totals.skipped, totals.unimplemented,
                  human_duration(seconds));
  if (output.text_wanted()) {
    print_results(output, results, s.verbose || !s.request.cases.empty());
    output.paint(verdict, good ? Style::green : Style::red);
  }
  write_whole(s.csv, to_csv(results));
  if (output.json_wanted()) {
    Json cases = Json::array(), kernels = Json::array();
    for (const CaseResult& r : results) cases.push_back(to_json(r));
    for (const KernelSummary& k : summarize(results)) kernels.push_back(to_json(k));
    output.json({{"schema", "assay.compare/1"},
                 {"tool", "assay " ASSAY_VERSION},
                 {"verdict", good ? "ok" : "failed"},
                 {"verdict_line", verdict},
                 {"cases", std::move(cases)},
                 {"kernels", std::move(kernels)},
                 {"summary",
                  {{"passed", totals.passed},
                   {"failed", totals.failed},
                   {"mistrusted", totals.mistrusted},
                   {"skipped", totals.skipped},
                   {"unimplemented", totals.unimplemented},
                   {"seconds", seconds}}}});
  }
  return good ? kExitOk : kExitCheckFailed;
}

}  // namespace assay
