#include "refimpl/replay/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr auto kOnTheLeft = Table::Align::left, kOnTheRight = Table::Align::right;

std::string capacity_of(std::size_t blocks) {
  return blocks == 0 ? "all" : with_thousands(blocks);
}

std::string seconds_of(double ms) {
  return fmt::format("{:.2f} s", ms / 1000);
}

void render_hits(const ReplayReport& report, const Output& output) {
  if (report.hits.empty()) return;
  Table table(
      {"capacity in blocks", "hits", "rate", "evictions", "hits of full blocks, ≤ n−1 tokens", "rate"},
      {kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight});
  for (const ReplayReport::Hits& h : report.hits)
    table.add({capacity_of(h.capacity), with_thousands(h.every_block.hits),
               fmt::format("{:.2f} %", 100 * h.every_block.rate()), with_thousands(h.every_block.evictions),
               with_thousands(h.engine.hits), fmt::format("{:.2f} %", 100 * h.engine.rate())});
  output.line("\nBlocks that a prefix cache has when they come, one request after the other");
  output.line(table.render());
}

void render_runs(const ReplayReport& report, const Output& output) {
  if (report.runs.empty()) return;
  Table table({"blocks", "policy", "done", "hit tokens", "evictions", "from disk", "preempted",
               "computed again", "running", "waiting", "fill", "first token p50", "p99"},
              {kOnTheRight, kOnTheLeft, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight,
               kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight});
  for (const ReplayReport::Run& run : report.runs) {
    const SimulationCounts& c = run.counts;
    table.add({with_thousands(run.capacity),
               fmt::format("{}{}", name(run.policy), run.early_rejection ? ", rejects early" : ""),
               with_thousands(c.finished), with_thousands(c.hit_tokens), with_thousands(c.evictions),
               with_thousands(c.loaded_blocks), with_thousands(c.preemptions),
               with_thousands(c.recomputed_tokens), fmt::format("{:.1f}", c.mean_running),
               fmt::format("{:.1f}", c.mean_waiting), fmt::format("{:.0f} %", 100 * c.batch_fill),
               seconds_of(percentile(c.first_token_ms, 0.5)),
               seconds_of(percentile(c.first_token_ms, 0.99))});
  }
  output.line(report.served_by.empty()
                  ? std::string("Through the scheduler, over a logical clock")
                  : fmt::format("Through the engine with {}, over a logical clock", report.served_by));
  output.line(table.render());
  const auto unlike = std::count_if(report.runs.begin(), report.runs.end(),
                                    [](const auto& run) { return !run.counted_alike.value_or(true); });
  if (!report.served_by.empty())
    output.line(unlike == 0 ? std::string("The scheduler alone, without the model, counts the same")
                            : fmt::format("DIFFERS from what the scheduler alone counts: {} runs", unlike));
}

void render_slo(const ReplayReport& report, const Output& output) {
  if (report.slo_ms == 0) return;
  Table table(
      {"blocks", "policy", "turned away", "too late", "in time", "tokens computed for those too late"},
      {kOnTheRight, kOnTheLeft, kOnTheRight, kOnTheRight, kOnTheRight, kOnTheRight});
  for (const ReplayReport::Run& run : report.runs) {
    const SimulationCounts& c = run.counts;
    table.add({with_thousands(run.capacity),
               fmt::format("{}{}", name(run.policy), run.early_rejection ? ", rejects early" : ""),
               with_thousands(c.rejected), with_thousands(c.late), with_thousands(c.finished - c.late),
               with_thousands(c.late_tokens)});
  }
  output.line(fmt::format("Against a first token within {}", seconds_of(report.slo_ms)));
  output.line(table.render());
}

}  // namespace

std::string_view name(Policy policy) {
  switch (policy) {
    case Policy::first_come: return "fcfs";
    case Policy::priority: return "priority";
    case Policy::shortest_first: return "sjf";
    case Policy::longest_prefix: return "lpm";
  }
  return "";
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::ptrdiff_t>(
      std::min(std::ceil(share * static_cast<double>(values.size())), static_cast<double>(values.size())));
  const auto at = values.begin() + std::max<std::ptrdiff_t>(rank - 1, 0);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

void render_text(const ReplayReport& report, const Output& output) {
  output.line(fmt::format("{}: {} requests in {}, {:.1f} tokens in and {:.1f} out on average{}",
                          escape_for_terminal(report.trace), with_thousands(report.requests),
                          seconds_of(report.seconds * 1000), report.mean_input, report.mean_output,
                          report.distinct_blocks == 0
                              ? ""
                              : fmt::format(", {} distinct blocks of {}",
                                            with_thousands(report.distinct_blocks), report.block_tokens)));
  render_hits(report, output);
  render_runs(report, output);
  render_slo(report, output);
}

Json render_json(const ReplayReport& report) {
  Json document = {{"schema", "assay.replay/1"},
                   {"trace", report.trace},
                   {"served_by", report.served_by},
                   {"requests", report.requests},
                   {"seconds", report.seconds},
                   {"mean_input", report.mean_input},
                   {"mean_output", report.mean_output},
                   {"distinct_blocks", report.distinct_blocks},
                   {"block_tokens", report.block_tokens},
                   {"hits", Json::array()},
                   {"runs", Json::array()}};
  for (const ReplayReport::Hits& h : report.hits)
    document["hits"].push_back({{"capacity", h.capacity},
                                {"blocks", h.every_block.blocks},
                                {"every_block", h.every_block.hits},
                                {"full_blocks", h.engine.hits},
                                {"evictions", h.every_block.evictions}});
  for (const ReplayReport::Run& run : report.runs) {
    const SimulationCounts& c = run.counts;
    document["runs"].push_back(
        {{"capacity", run.capacity},
         {"policy", name(run.policy)},
         {"early_rejection", run.early_rejection},
         {"finished", c.finished},
         {"refused", c.refused},
         {"rejected", c.rejected},
         {"late", c.late},
         {"late_tokens", c.late_tokens},
         {"steps", c.steps},
         {"prompt_tokens", c.prompt_tokens},
         {"computed_tokens", c.computed_tokens},
         {"made_tokens", c.made_tokens},
         {"hit_tokens", c.hit_tokens},
         {"recomputed_tokens", c.recomputed_tokens},
         {"evictions", c.evictions},
         {"loaded_blocks", c.loaded_blocks},
         {"preemptions", c.preemptions},
         {"most_waiting", c.most_waiting},
         {"mean_waiting", c.mean_waiting},
         {"mean_running", c.mean_running},
         {"batch_fill", c.batch_fill},
         {"seconds", c.ms / 1000},
         {"first_token_ms",
          {{"p50", percentile(c.first_token_ms, 0.5)},
           {"p90", percentile(c.first_token_ms, 0.9)},
           {"p99", percentile(c.first_token_ms, 0.99)}}},
         {"between_tokens_ms",
          {{"p50", percentile(c.between_tokens_ms, 0.5)}, {"p99", percentile(c.between_tokens_ms, 0.99)}}}});
    if (run.counted_alike) document["runs"].back()["counted_alike"] = *run.counted_alike;
  }
  return document;
}

}  // namespace assay
