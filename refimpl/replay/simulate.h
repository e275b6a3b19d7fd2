// A workload through the scheduler and its pool, counted over a logical clock: no model, no numbers, or by whoever serves
// it (served_replay.h).
//
// A step takes base + tokens · a token's time. Requests come when the trace says, are served as Scheduler has it, and
// go when they made as many tokens as the trace says. With an SLO on the time to the first token a request may be
// turned away when it comes: where what stands before it already takes longer (Mooncake, FAST'25, §6).
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "refimpl/block_store/counted_level.h"
#include "refimpl/engine/scheduler.h"
#include "refimpl/replay/trace.h"

namespace assay {

struct SimulationOptions {
  SchedulerOptions scheduler;  // block_tokens: the trace's, where it has blocks
  double step_ms = 20, token_us = 25;
  std::uint64_t disk_bytes = 0;   // of a second level of the pool; 0: there is none
  BlockSizes block_sizes;         // in it: by default a block is a byte
  double first_token_slo_ms = 0;  // 0: none
  bool reject_early = false;
  std::size_t context = std::numeric_limits<std::size_t>::max();  // of a text, however roomy the cache
};

// One sample of the time line.
struct SimulatedMoment {
  double ms = 0;
  std::size_t running = 0, waiting = 0, tokens = 0;  // tokens: of the steps since the last sample, on average
};

struct SimulationCounts {
  std::size_t requests = 0, refused = 0, rejected = 0, finished = 0, late = 0;
  std::size_t steps = 0, prompt_tokens = 0, computed_tokens = 0, made_tokens = 0, hit_tokens = 0;
  std::size_t recomputed_tokens = 0;  // known before and computed again, after a preemption
  std::size_t late_tokens = 0;        // computed for requests that missed the SLO
  std::size_t evictions = 0, preemptions = 0, most_waiting = 0, loaded_blocks = 0;
  double ms = 0, mean_waiting = 0, mean_running = 0, batch_fill = 0;  // fill: of the tokens a step may have
  std::vector<double> first_token_ms, between_tokens_ms;  // of each finished request; the mean between
  std::vector<SimulatedMoment> moments;
};

// Whoever serves the texts of a workload, by their places in it.
class TextServer {
 public:
  virtual ~TextServer() = default;
  virtual Scheduler& scheduler() = 0;
  virtual void add(std::size_t index) = 0;
  // A step; what it will compute is told before, index by index, so that it can be counted.
  virtual void step(const std::function<void(const StepPlan&)>& planned) = 0;
  virtual std::size_t index_of(const ServedText& text) const = 0;
};

// `progress` is told how many requests are over; false: no more is wanted.
SimulationCounts simulate(const Trace& trace, const SimulationOptions& options,
                          const std::function<bool(std::size_t)>& progress = {});
// The same counts of whoever else serves them.
SimulationCounts simulate(const Trace& trace, const SimulationOptions& options, TextServer& server,
                          const std::function<bool(std::size_t)>& progress = {});

}  // namespace assay
