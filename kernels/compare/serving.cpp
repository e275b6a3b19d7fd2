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
    "  assay compare serving DIR --mutants                plant faults that engines had; is each caught?\n"
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
// Some show where a text is preempted as it is written, which few workloads do: 317 were needed of data/models/qwen3.
constexpr std::uint64_t kMostSchedulesOfAFault = 3000;

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

bool keeps_rows(const LanguageModel& model) {
  const std::vector<CacheWidth> widths = model.cache_widths();
  return std::any_of(widths.begin(), widths.end(),
                     [](const CacheWidth& width) { return width.key_width > 0; });
}

int plant_faults(const ServingWorkload& workload, const HandoffModel& handoff, const Settings& s,
                 const Output& output) {
  Table table({"", "shipped in", "fault", "", "workloads", "seen"},
              {Table::Align::right, Table::Align::left, Table::Align::left, Table::Align::left,
               Table::Align::right, Table::Align::left});
  Json list = Json::array();
  std::size_t missed = 0, faults = 0;
  const auto add = [&](const auto& fault, const FaultVerdict& verdict) {
    ++faults;
    missed += verdict.caught ? 0 : 1;
    table.add({std::to_string(fault.number), fault.shipped_in, fault.what,
               verdict.caught ? "caught" : "MISSED", std::to_string(verdict.schedules), verdict.by});
    list.push_back({{"number", fault.number},
                    {"shipped_in", fault.shipped_in},
                    {"fault", fault.what},
                    {"caught", verdict.caught},
                    {"schedules", verdict.schedules},
                    {"by", verdict.by}});
  };
  for (const ServingFault& fault : serving_faults()) {
    if (interrupted()) return kExitInterrupted;
    if (fault.needs_windows && cache_groups(workload.model().cache_widths()).size() < 2) continue;
    if (fault.needs_rows && !keeps_rows(workload.model())) continue;
    if (!shows_in(fault.guessing, workload.model())) continue;
    add(fault, catch_fault(workload, fault, s.schedules.value_or(kMostSchedulesOfAFault)));
  }
  for (const HandoffFault& fault : handoff_faults()) {
    if (interrupted()) return kExitInterrupted;
    if (!shows_in(fault, handoff)) continue;
    const std::string by = catch_handoff_fault(handoff, fault);
    add(fault, {!by.empty(), 1, by});
  }
  output.json({{"schema", "assay.compare.serving/1"}, {"mutants", list}});
  if (output.text_wanted()) {
    output.line(table.render());
    output.paint(missed == 0 ? fmt::format("OK: {} planted faults caught", faults)
                             : fmt::format("FAILED: {} of {} planted faults were missed", missed, faults),
                 missed == 0 ? Style::green : Style::red);
  }
  return missed == 0 ? kExitOk : kExitCheckFailed;
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
  const ServingWorkload workload(*model, *ops, 7, s.longest);
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
  command
      .add_option("--schedules", s.schedules,
                  "Random workloads (default: 200; of a planted fault until it is caught, 3,000 at most)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  command.add_option("--seed", s.seed, "Of the first of them (default: 0)")->type_name("N");
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
