#include "refimpl/replay/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/not_empty.h"
#include "core/system/one_of.h"
#include "core/system/output_paths.h"
#include "core/system/real_range.h"
#include "core/system/threads.h"
#include "refimpl/models/model.h"
#include "refimpl/replay/report.h"
#include "refimpl/replay/served_replay.h"

namespace assay {
namespace {

struct Settings {
  std::string trace, html;
  std::string model, kernels = "cpu", precision = "f32";
  KernelSelector select;
  std::size_t scale = 128, disk_blocks = 0;
  CommonOptions common;
  std::vector<std::size_t> capacities = {1'000, 10'000, 30'000, 50'000, 100'000, 0};
  std::vector<Policy> policies = {Policy::first_come};
  std::vector<std::size_t> pools;
  Preemption preemption = Preemption::recompute;
  SimulationOptions simulation;
  std::size_t block_tokens = 16, requests = 0;
  bool dry = false, reject_early = false;
};

ReplayReport describe(const Trace& trace, const Settings& s) {
  ReplayReport report{
      .trace = s.trace, .requests = trace.requests.size(), .slo_ms = s.simulation.first_token_slo_ms};
  report.distinct_blocks = trace.distinct_blocks();
  report.block_tokens = trace.block_tokens;
  report.seconds = trace.requests.back().arrival / 1000;
  double input = 0, output = 0;
  for (const TraceRequest& request : trace.requests) {
    input += static_cast<double>(request.input);
    output += static_cast<double>(request.output);
  }
  report.mean_input = input / static_cast<double>(trace.requests.size());
  report.mean_output = output / static_cast<double>(trace.requests.size());
  return report;
}

// A model, and the workload as long as it bears.
struct ScaledReplay {
  ScaledReplay(const Trace& trace, const Settings& s)
      : weights(s.model, s.common.jobs),
        ops(s.select(s.kernels).make({precision_from_text(s.precision).value()}, s.common.jobs)),
        model(make_model(weights, {})),
        scaled(scale_trace(trace, s.scale, model->vocabulary())) {}
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  ScaledTrace scaled;
};

// Once by the engine, and once by the scheduler alone.
ReplayReport::Run serve(const ScaledReplay& replay, const Settings& s, SimulationOptions options) {
  const auto progress = [](std::size_t) { return !interrupted(); };
  options = scale_options(options, s.scale);
  options.context = replay.model->context();
  EngineServer server(*replay.model, *replay.ops, replay.scaled, options.scheduler, s.disk_blocks);
  ReplayReport::Run run{options.scheduler.blocks, options.scheduler.policy, options.reject_early,
                        simulate(replay.scaled.trace, options, server, progress)};
  if (!interrupted())
    run.counted_alike =
        same_counts(run.counts, simulate(replay.scaled.trace, server.as_counted(options), progress));
  return run;
}

int run(const Settings& s) {
  const Output output(s.common.json);
  check_outputs({s.html, s.common.json});
  Trace trace = read_trace(s.trace);
  if (s.requests != 0 && s.requests < trace.requests.size()) trace.requests.resize(s.requests);
  ReplayReport report = describe(trace, s);
  for (const std::size_t capacity : s.capacities) {
    if (trace.block_tokens == 0 || interrupted()) break;
    report.hits.push_back({capacity, count_hits(trace, capacity, CountingRule::every_block),
                           count_hits(trace, capacity, CountingRule::engine)});
  }
  std::optional<ScaledReplay> replay;
  if (!s.model.empty()) {
    replay.emplace(trace, s);
    report.served_by = fmt::format("{}, lengths / {}", replay->weights.tree().family, s.scale);
  }
  for (const std::size_t blocks : s.pools) {
    for (const Policy policy : s.policies) {
      for (const bool early : {false, true}) {
        if (early && !s.reject_early) continue;
        if (interrupted()) break;
        SimulationOptions options = s.simulation;
        options.scheduler.blocks = blocks;
        options.scheduler.block_tokens = trace.block_tokens != 0 ? trace.block_tokens : s.block_tokens;
        options.scheduler.policy = policy;
        options.scheduler.preemption = s.preemption;
        options.scheduler.prefix_cache = trace.block_tokens != 0;
        options.reject_early = early;
        options.disk_bytes = s.disk_blocks;  // a block counts as a byte
        if (replay) {
          report.runs.push_back(serve(*replay, s, options));
        } else {
          report.runs.push_back(
              {blocks, policy, early, simulate(trace, options, [](std::size_t) { return !interrupted(); })});
        }
      }
    }
  }
  if (output.text_wanted()) render_text(report, output);
  output.json(render_json(report));
  if (!s.html.empty()) write_whole(s.html, render_html(report));
  if (interrupted()) return kExitInterrupted;
  const bool alike = std::all_of(report.runs.begin(), report.runs.end(), [](const ReplayReport::Run& one) {
    return one.counted_alike.value_or(true);
  });
  return alike ? kExitOk : kExitCheckFailed;
}

constexpr const char* kExamples =
    "  assay replay conversation_trace.jsonl                     hits by capacity, exactly\n"
    "  assay replay trace.jsonl --blocks 10000,50000 --policy fcfs --policy lpm\n"
    "  assay replay trace.jsonl --blocks 50000 --slo 30000 --reject-early --html page.html\n"
    "  assay replay AzureLLMInferenceTrace_conv.csv --blocks 20000 --block-tokens 16\n"
    "  assay replay trace.jsonl --blocks 500 --model MODEL --scale 128     through the engine, with a model\n"
    "\nExit codes: 0 all well, 1 the engine counted other than the scheduler alone, 2 wrong usage or "
    "unreadable input, 130 interrupted.";

void add_options(CLI::App& command, Settings& s) {
  const std::map<std::string, Policy> policies = {{"fcfs", Policy::first_come},
                                                  {"priority", Policy::priority},
                                                  {"sjf", Policy::shortest_first},
                                                  {"lpm", Policy::longest_prefix}};
  const std::map<std::string, Preemption> preemptions = {{"recompute", Preemption::recompute},
                                                         {"swap", Preemption::swap}};
  command.add_option("trace", s.trace, "Mooncake's jsonl, or Azure's csv")->required()->type_name("TRACE");
  command.add_option("--capacity", s.capacities, "Blocks of the caches whose hits are counted; 0: no limit")
      ->delimiter(',')
      ->type_name("N,…");
  command.add_option("--blocks", s.pools, "Go through the scheduler with pools of so many blocks")
      ->delimiter(',')
      ->type_name("N,…")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30));
  command
      .add_option("--policy", s.policies,
                  "Who is served next: fcfs (default), priority, sjf, lpm; may be repeated")
      ->transform(one_of(policies))
      ->type_name("POLICY");
  command
      .add_option("--preemption", s.preemption,
                  "What is preempted is computed again (default), or swapped out")
      ->transform(one_of(preemptions))
      ->type_name("recompute|swap");
  command
      .add_option("--block-tokens", s.block_tokens, "Tokens a block, where the trace has none (default: 16)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20));
  command
      .add_option("--tokens-a-step", s.simulation.scheduler.tokens_a_step,
                  "The budget of a step (default: 2048)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30));
  command
      .add_option("--chunk", s.simulation.scheduler.chunk, "Tokens of one prompt in a step (default: 2048)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30));
  command
      .add_option("--texts", s.simulation.scheduler.texts_at_once, "Requests running at once (default: 256)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20));
  command.add_option("--step-ms", s.simulation.step_ms, "The clock: what a step takes (default: 20)")
      ->check(real_range(0.0, 1e6));
  command
      .add_option("--token-us", s.simulation.token_us,
                  "The clock: what each of its tokens adds (default: 25)")
      ->check(real_range(0.0, 1e9));
  auto* slo = command
                  .add_option("--slo", s.simulation.first_token_slo_ms,
                              "Milliseconds to the first token that are wanted")
                  ->type_name("MS")
                  ->check(positive_real());
  command
      .add_flag("--reject-early", s.reject_early, "Also with requests turned away that would come too late")
      ->needs(slo);
  command.add_option("--requests", s.requests, "Only the first N requests")->type_name("N");
  command.add_option("--disk-blocks", s.disk_blocks, "A second level of the pool, of so many blocks")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30));
  auto* dry = command.add_flag("--dry", s.dry, "Counts only: what is done without a model");
  auto* model = command
                    .add_option("--model", s.model,
                                "Serve the workload with this model, every length divided by --scale")
                    ->type_name("MODEL")
                    ->excludes(dry);
  command.add_option("--scale", s.scale, "Of --model: a divisor of the trace's blocks (default: 128)")
      ->type_name("N")
      ->needs(model)
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20));
  command.add_option("--kernels", s.kernels, "Of --model: whose arithmetic (default: cpu)")
      ->type_name("SET")
      ->needs(model);
  command.add_option("--precision", s.precision, "Of --model: f64 | f32 | bf16 (default: f32)")
      ->needs(model)
      ->check(CLI::IsMember({"f64", "f32", "bf16"}));
  command.add_option("--html", s.html, "Write a page of plots")->type_name("FILE")->check(not_empty());
}

}  // namespace

void add_replay(CLI::App& program, Action& action, const KernelSelector& select) {
  auto settings = std::make_shared<Settings>();
  settings->select = select;
  settings->simulation.scheduler.tokens_a_step = settings->simulation.scheduler.chunk = 2048;
  CLI::App& command =
      *program.add_subcommand("replay", "A recorded workload through scheduler and prefix cache");
  add_options(command, *settings);
  add_common_options(command, settings->common);
  set_examples(command, kExamples);
  command.callback([settings, &action] { action = [settings] { return run(*settings); }; });
}

}  // namespace assay
