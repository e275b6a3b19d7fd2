// A recorded workload through the engine with a model: what it counts is what the scheduler alone counts.
#include "refimpl/replay/served_replay.h"

#include <gtest/gtest.h>

#include <random>

#include "core/system/error.h"
#include "refimpl/models/model.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

// Requests that begin alike, in groups, some the same; more at once than small pools bear.
Trace made_trace(std::size_t requests) {
  std::mt19937 random(5);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Trace trace;
  trace.block_tokens = 512;
  std::uint64_t fresh = 1000;
  for (std::size_t i = 0; i < requests; ++i) {
    TraceRequest request;
    request.arrival = static_cast<double>(i) * 30;
    request.input = 1 + below(9 * 512);
    request.output = 1 + below(2000);
    const std::size_t blocks = (request.input + 511) / 512, shared = below(blocks + 1), group = below(3);
    for (std::size_t b = 0; b < blocks; ++b) request.blocks.push_back(b < shared ? group * 100 + b : fresh++);
    trace.requests.push_back(request);
  }
  return trace;
}

struct Totals {
  std::size_t hits = 0, evictions = 0, preemptions = 0, recomputed = 0, loaded = 0, finished = 0;
};

Totals compare_counts(const std::string& name, std::size_t factor) {
  const Weights weights(test::source_dir() / "data/models" / name, 1);
  const auto ops = reference_kernels().make({Precision::f32}, 1);
  const auto model = make_model(weights, {});
  const ScaledTrace scaled = scale_trace(made_trace(24), factor, model->vocabulary());
  Totals totals;
  for (const Policy policy :
       {Policy::first_come, Policy::priority, Policy::shortest_first, Policy::longest_prefix}) {
    for (const Preemption preemption : {Preemption::recompute, Preemption::swap}) {
      for (const std::size_t disk_blocks : {0U, 7U, 1000U}) {
        SimulationOptions options;
        options.scheduler = {.blocks = 24, .block_tokens = 512, .tokens_a_step = 4096, .chunk = 1024};
        options.scheduler.policy = policy;
        options.scheduler.preemption = preemption;
        options = scale_options(options, factor);
        options.context = model->context();
        EngineServer server(*model, *ops, scaled, options.scheduler, disk_blocks);
        const SimulationCounts served = simulate(scaled.trace, options, server);
        const SimulationCounts counted = simulate(scaled.trace, server.as_counted(options));
        EXPECT_TRUE(same_counts(served, counted))
            << name << ", policy " << static_cast<int>(policy) << ", preemption "
            << static_cast<int>(preemption) << ", disk " << disk_blocks << ": hits " << served.hit_tokens
            << " and " << counted.hit_tokens << ", loads " << served.loaded_blocks << " and "
            << counted.loaded_blocks << ", evictions " << served.evictions << " and " << counted.evictions
            << ", steps " << served.steps << " and " << counted.steps;
        EXPECT_EQ(served.ms, counted.ms);
        EXPECT_EQ(served.first_token_ms, counted.first_token_ms);
        EXPECT_EQ(served.finished + served.refused, scaled.trace.requests.size());
        totals.hits += served.hit_tokens;
        totals.evictions += served.evictions;
        totals.preemptions += served.preemptions;
        totals.recomputed += served.recomputed_tokens;
        totals.loaded += served.loaded_blocks;
        totals.finished += served.finished;
      }
    }
  }
  return totals;
}

// Rows, windows, states; and blocks of 4, of 8 and of 1 token.
TEST(ServedReplay, TheEngineCountsWhatTheSchedulerAloneCounts) {
  for (const auto& [name, factor] :
       {std::pair<std::string, std::size_t>{"llama", 128}, {"llama", 512}, {"gemma3", 64}, {"lfm2", 128}}) {
    const Totals totals = compare_counts(name, factor);
    EXPECT_GT(totals.finished, 0U) << name;
    EXPECT_GT(totals.hits, 0U) << name;
    EXPECT_GT(totals.evictions, 0U) << name;
    EXPECT_GT(totals.preemptions, 0U) << name;
    EXPECT_GT(totals.recomputed, 0U) << name;
    EXPECT_GT(totals.loaded, 0U) << name;
  }
}

TEST(ServedReplay, ScalesLengthsBlocksAndTime) {
  Trace trace = made_trace(2);
  trace.requests[0] = {0, 1100, 300, {7, 8, 9}};
  trace.requests[1] = {5, 1024, 1, {7, 8}};
  const ScaledTrace scaled = scale_trace(trace, 128, 90);
  EXPECT_EQ(scaled.trace.block_tokens, 4U);
  EXPECT_EQ(scaled.trace.requests[0].input, 9U);
  EXPECT_EQ(scaled.trace.requests[0].output, 3U);
  EXPECT_EQ(scaled.texts[0].size(), 12U);
  // Two blocks alike; the third is the end of the first prompt with its answer.
  EXPECT_EQ(scaled.trace.requests[0].blocks, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(scaled.trace.requests[1].blocks, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_TRUE(std::equal(scaled.texts[1].begin(), scaled.texts[1].begin() + 8, scaled.texts[0].begin()));
  EXPECT_THROW(scale_trace(trace, 100, 90), Error);
  SimulationOptions options{.token_us = 25};
  options.scheduler = {.block_tokens = 512, .tokens_a_step = 2048, .chunk = 64};
  options = scale_options(options, 128);
  EXPECT_EQ(options.scheduler.block_tokens, 4U);
  EXPECT_EQ(options.scheduler.tokens_a_step, 16U);
  EXPECT_EQ(options.scheduler.chunk, 1U);
  EXPECT_EQ(options.token_us, 3200);
}

// Caches that serve texts of one length only have no place here.
TEST(ServedReplay, RefusesAModelWhoseRotaryFrequenciesFollowTheLength) {
  const Weights weights(test::source_dir() / "data/models/llama-dynamic", 1);
  const auto ops = reference_kernels().make({Precision::f32}, 1);
  const auto model = make_model(weights, {});
  const ScaledTrace scaled = scale_trace(made_trace(1), 128, model->vocabulary());
  EXPECT_THROW(EngineServer(*model, *ops, scaled, {.blocks = 4}, 0), Error);
}

}  // namespace
}  // namespace assay
