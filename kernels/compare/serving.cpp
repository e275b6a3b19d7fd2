#include "kernels/compare/serving.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <optional>

#include "core/numeric/simd_option.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/selection/select.h"
#include "refimpl/claims/faults.h"
#include "refimpl/claims/handoff_faults.h"

namespace assay {
namespace {

constexpr const char* kExamples =
    "  assay compare serving DIR                          200 random workloads, bit for bit\n"
    "  assay compare serving DIR --kernels reference --precision bf16 --schedules 10000\n"
    "  assay compare serving DIR --kernels cpu            bits that depend on company: how much?\n"
    "  assay compare serving DIR --seed 24 --schedules 1  one workload again\n"
    "  assay compare serving DIR --mutants                plant faults that engines had: each is caught and "
    "named\n"
    "\nExit codes: 0 each request says what it says alone, 1 one does not, 2 wrong usage or unreadable "
    "input,\n"
    "130 interrupted.";

struct Settings {
  CommonOptions common;
  std::string model, kernels = "cpu-invariant", precision = "f32";
  std::optional<std::uint64_t> schedules;
  std::uint64_t seed = 0;
  std::size_t longest = 80;
  bool mutants = false;
};

struct ServingTotals {
  std::uint64_t schedules = 0, differing = 0;
  double error = 0;
  ServingCounts counts;
  std::size_t evictions = 0;
  std::vector<std::pair<std::uint64_t, std::string>> wrong;  // the first of them, by seed
};

constexpr std::size_t kMostShown = 5;
constexpr std::uint64_t kSchedules = 200;
constexpr std::size_t kLongestBesideFaults = 16;  // whose workloads are their own

ServingTotals serve_schedules(const ServingWorkload& workload, const Settings& s) {
  ServingTotals totals;
  const std::uint64_t schedules = s.schedules.value_or(kSchedules);
  for (std::uint64_t seed = s.seed; seed < s.seed + schedules && !interrupted(); ++seed) {
    const ScheduleResult result = run_schedule(workload, random_schedule(workload, seed));
    ++totals.schedules;
    totals.counts.steps += result.counts.steps;
    totals.counts.tokens += result.counts.tokens;
    totals.counts.hit_tokens += result.counts.hit_tokens;
    totals.counts.preemptions += result.counts.preemptions;
    totals.counts.loaded_blocks += result.counts.loaded_blocks;
    totals.evictions += result.evictions;
    if (result.wrong.empty()) continue;
    ++totals.differing;
    if (!(result.error <= totals.error)) totals.error = result.error;
    if (totals.wrong.size() < kMostShown) totals.wrong.emplace_back(seed, result.wrong);
  }
  return totals;
}

Json to_json(const ServingTotals& totals, bool promised) {
  Json wrong = Json::array();
  for (const auto& [seed, what] : totals.wrong) wrong.push_back({{"seed", seed}, {"what", what}});
  return {{"schema", "assay.compare.serving/1"},
          {"schedules", totals.schedules},
          {"promised", promised},
          {"differing", totals.differing},
          {"error", totals.error},
          {"steps", totals.counts.steps},
          {"tokens", totals.counts.tokens},
          {"hit_tokens", totals.counts.hit_tokens},
          {"preemptions", totals.counts.preemptions},
          {"evictions", totals.evictions},
          {"loaded_blocks", totals.counts.loaded_blocks},
          {"wrong", wrong}};
}

int tell(const ServingTotals& totals, bool promised, const Output& output) {
  output.json(to_json(totals, promised));
  for (const auto& [seed, what] : totals.wrong) output.line(fmt::format("seed {}: {}", seed, what));
  output.line(
      fmt::format("{} steps, {} tokens; {} tokens hit, {} preemptions, {} blocks evicted, {} read from disk",
                  with_thousands(totals.counts.steps), with_thousands(totals.counts.tokens),
                  with_thousands(totals.counts.hit_tokens), with_thousands(totals.counts.preemptions),
                  with_thousands(totals.evictions), with_thousands(totals.counts.loaded_blocks)));
  if (interrupted()) return kExitInterrupted;
  if (!promised) {
    output.line(fmt::format(
        "NOT PROMISED by these kernels: {} of {} workloads differ from each request alone, by {:.2g} at most",
        totals.differing, totals.schedules, totals.error));
    return kExitOk;
  }
  const bool good = totals.differing == 0;
  output.paint(
      good ? fmt::format("OK: {} workloads, every request bit for bit what it is alone", totals.schedules)
           : fmt::format("FAILED: {} of {} workloads", totals.differing, totals.schedules),
      good ? Style::green : Style::red);
  return good ? kExitOk : kExitCheckFailed;
}

// What became of each fault, as a table and as JSON.
class FaultReport {
 public:
  template <class Fault, class Catch>
  void add(const Fault& fault, const std::string& why_not, const Catch& caught_by) {
    Json entry = {{"number", fault.number}, {"shipped_in", fault.shipped_in}, {"fault", fault.what}};
    entry["applies"] = why_not.empty();
    std::string verdict = "not here", seen = why_not;
    if (why_not.empty()) {
      const FaultVerdict found = caught_by();
      ++planted_;
      missed_ += found.caught ? 0 : 1;
      verdict = found.caught ? "caught" : "MISSED";
      seen = found.by;
      entry["caught"] = found.caught;
      entry["by"] = found.by;
    } else {
      entry["why_not"] = why_not;
    }
    table_.add({std::to_string(fault.number), fault.shipped_in, fault.what, verdict, seen});
    list_.push_back(std::move(entry));
  }

  int tell(const Output& output) const {
    output.json({{"schema", "assay.compare.serving/1"}, {"mutants", list_}});
    if (output.text_wanted()) {
      output.line(table_.render());
      const std::size_t absent = list_.size() - planted_;
      output.paint(missed_ == 0
                       ? fmt::format("OK: {} planted faults caught{}", planted_,
                                     absent == 0 ? "" : fmt::format(", {} cannot show in this model", absent))
                       : fmt::format("FAILED: {} of {} planted faults were missed", missed_, planted_),
                   missed_ == 0 ? Style::green : Style::red);
    }
    return missed_ == 0 ? kExitOk : kExitCheckFailed;
  }

 private:
  Table table_{
      {"", "shipped in", "fault", "", "seen"},
      {Table::Align::right, Table::Align::left, Table::Align::left, Table::Align::left, Table::Align::left}};
  Json list_ = Json::array();
  std::size_t missed_ = 0, planted_ = 0;
};

int plant_faults(const ServingWorkload& workload, const HandoffModel& handoff, const Settings& s,
                 const Output& output) {
  FaultReport report;
  for (const ServingFault& fault : serving_faults()) {
    if (interrupted()) return kExitInterrupted;
    report.add(fault, why_not(fault, workload.model()), [&] { return catch_fault(workload, fault, s.seed); });
  }
  for (const HandoffFault& fault : handoff_faults()) {
    if (interrupted()) return kExitInterrupted;
    report.add(fault, why_not(fault, handoff), [&] {
      const std::string by = catch_handoff_fault(handoff, fault);
      return FaultVerdict{!by.empty(), by};
    });
  }
  return interrupted() ? kExitInterrupted : report.tell(output);
}

int run_serving(const Settings& s) {
  const Output output(s.common.json);
  const Weights weights(s.model, s.common.jobs);
  const std::unique_ptr<LanguageModel> model = make_model(weights, {});
  const bool promised = is_invariant(builtin_kernels(), s.kernels);
  const std::unique_ptr<Ops> ops =
      select_kernels(builtin_kernels(), s.kernels, {precision_from_text(s.precision).value()}, s.common.jobs);
  if (s.mutants && !promised)
    throw Error::usage("faults are told from kernels whose bits depend on nothing else")
        .remedy("use --kernels cpu-invariant or reference");
  if (s.mutants && s.schedules)
    throw Error::usage("--schedules goes without --mutants: each fault has a workload of its own");
  const ServingWorkload workload(*model, *ops, 7, s.mutants ? kLongestBesideFaults : s.longest);
  if (s.mutants)
    return plant_faults(workload, {*model, *ops, cache_shape(*model, weights.tree()), {}}, s, output);
  return tell(serve_schedules(workload, s), promised, output);
}

}  // namespace

void add_compare_serving(CLI::App& compare, Action& action) {
  auto settings = std::make_shared<Settings>();
  Settings& s = *settings;
  CLI::App& command = *compare.add_subcommand(
      "serving", "Requests served together, from cached prefixes, preempted: is each what it is alone?");
  command
      .add_option("MODEL", s.model, "A model's folder, a .safetensors with config.json beside it, or a .gguf")
      ->required();
  command
      .add_option("--kernels", s.kernels,
                  "Whose arithmetic: cpu-invariant (default), reference, cpu, or OP=KERNEL,…")
      ->type_name("SET");
  command
      .add_option("--precision", s.precision,
                  "f64 | f32 | bf16 | fp8-block | int8 | int16 | int8-block (default: f32)")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "fp8-block", "int8", "int16", "int8-block"}));
  command.add_option("--schedules", s.schedules, "Random workloads (default: 200)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  command.add_option("--seed", s.seed, "Of the first of them, and of the tokens of --mutants (default: 0)")
      ->type_name("N");
  command.add_option("--longest", s.longest, "Tokens of the longest prompt (default: 80)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 20));
  command.add_flag("--mutants", s.mutants, "Plant faults that serving engines were shipped with");
  add_isa_option(command);
  add_common_options(command, s.common);
  set_examples(command, kExamples);
  command.callback([settings, &action] { action = [settings] { return run_serving(*settings); }; });
}

}  // namespace assay
