// Who is to be asked when, how much: a closed loop, arrivals at random, or a recorded workload.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "refimpl/replay/trace.h"

namespace assay {

struct PlannedRequest {
  double due = 0;  // seconds after the beginning; of a closed loop 0: as soon as somebody is free
  std::size_t prompt_tokens = 0, output_tokens = 0;
  std::vector<std::uint64_t> blocks;  // equal numbers, equal prefixes; empty: nobody else's prompt
};

struct LoadPlan {
  std::vector<PlannedRequest> requests;
  std::size_t block_tokens = 0;
};

struct LoadLengths {
  std::size_t requests = 0, prompt_tokens = 0, output_tokens = 0;
};
LoadPlan closed_plan(const LoadLengths& lengths);
// Arrivals of a Poisson process: gaps are exponential, of mean 1 / rate.
LoadPlan poisson_plan(const LoadLengths& lengths, double rate, std::uint64_t seed);
// The trace's times by `time_scale` (0.5: twice as fast). An answer of no token is asked for one.
LoadPlan trace_plan(const Trace& trace, double time_scale, std::optional<std::size_t> most_requests);

}  // namespace assay
