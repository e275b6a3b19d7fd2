#include "refimpl/bench_url/load_plan.h"

#include <algorithm>
#include <cmath>

#include "refimpl/sampling/keyed_random.h"

namespace assay {

LoadPlan closed_plan(const LoadLengths& lengths) {
  return {
      std::vector<PlannedRequest>(lengths.requests, {0, lengths.prompt_tokens, lengths.output_tokens, {}}),
      0};
}

LoadPlan poisson_plan(const LoadLengths& lengths, double rate, std::uint64_t seed) {
  LoadPlan plan = closed_plan(lengths);
  double now = 0;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    now += -std::log1p(-keyed_uniform({.seed = seed}, i)) / rate;
    plan.requests[i].due = now;
  }
  return plan;
}

LoadPlan trace_plan(const Trace& trace, double time_scale, std::optional<std::size_t> most_requests) {
  LoadPlan plan{{}, trace.block_tokens};
  const std::size_t count = std::min(trace.requests.size(), most_requests.value_or(trace.requests.size()));
  for (std::size_t i = 0; i < count; ++i) {
    const TraceRequest& request = trace.requests[i];
    plan.requests.push_back({request.arrival / 1000 * time_scale, request.input,
                             std::max<std::size_t>(1, request.output), request.blocks});
  }
  return plan;
}

}  // namespace assay
