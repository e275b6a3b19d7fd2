// Recorded workloads: what is read of them, the hits of a prefix cache counted exactly, and the same through the
// scheduler.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/system/error.h"
#include "refimpl/replay/hit_counts.h"
#include "refimpl/replay/report.h"
#include "refimpl/replay/simulate.h"
#include "tests/support/support.h"

namespace assay {
namespace {

struct Expected {
  std::string file;
  std::size_t requests, blocks, distinct;
  std::vector<std::pair<std::size_t, std::pair<std::size_t, std::size_t>>>
      hits;  // capacity → every block, full ones
};

// Counted by a program that is not ours, over the files that Mooncake published.
TEST(Replay, CountsTheHitsOfPublishedWorkloads) {
  const std::vector<Expected> all = {{"conversation_trace.jsonl",
                                      12031,
                                      288500,
                                      182790,
                                      {{1000, {12847, 12990}},
                                       {10000, {61046, 62005}},
                                       {30000, {93978, 95337}},
                                       {50000, {102290, 102724}},
                                       {100000, {104924, 104926}},
                                       {0, {105710, 105592}}}},
                                     {"synthetic_trace.jsonl",
                                      3993,
                                      121877,
                                      43924,
                                      {{1000, {10252, 10370}},
                                       {10000, {51669, 52952}},
                                       {30000, {76077, 76350}},
                                       {50000, {77953, 77740}},
                                       {100000, {77953, 77740}},
                                       {0, {77953, 77740}}}}};
  for (const Expected& expected : all) {
    ASSAY_CASE_OR_SKIP(file, "traces/" + expected.file);
    const Trace trace = read_trace(file);
    EXPECT_EQ(trace.requests.size(), expected.requests);
    EXPECT_EQ(trace.distinct_blocks(), expected.distinct);
    for (const auto& [capacity, hits] : expected.hits) {
      const HitCounts every = count_hits(trace, capacity, CountingRule::every_block);
      EXPECT_EQ(every.blocks, expected.blocks);
      EXPECT_EQ(every.hits, hits.first) << expected.file << ' ' << capacity;
      EXPECT_EQ(count_hits(trace, capacity, CountingRule::engine).hits, hits.second)
          << expected.file << ' ' << capacity;
    }
  }
}

// The fault of an engine: blocks of a text freed head first (serving mutant 14).
class HeadFirst : public BlockPool {
 public:
  using BlockPool::BlockPool;
  void release_all(std::span<const BlockId> blocks) override {
    for (const BlockId block : blocks) release(block);
  }
};

TEST(Replay, ABeginningEvictedBeforeItsEndIsSeenInTheCounts) {
  ASSAY_CASE_OR_SKIP(file, "traces/synthetic_trace.jsonl");
  HeadFirst pool(1000);
  EXPECT_EQ(count_hits(read_trace(file), pool, CountingRule::every_block).hits, 10050U);
}

Trace trace_of(const std::string& text, const std::string& name = "trace.jsonl") {
  const test::TempDir dir;
  test::write_file(dir / name, text);
  return read_trace(dir / name);
}

TEST(Replay, CountsASmallWorkloadByHand) {
  // Blocks 1 2 3 | 1 2 4 | 1 2 3 again, of which a cache of four has lost what was used longest ago.
  const Trace trace = trace_of(
      "{\"timestamp\":5,\"input_length\":1100,\"output_length\":2,\"hash_ids\":[1,2,3]}\n"
      "{\"timestamp\":6,\"input_length\":1536,\"output_length\":2,\"hash_ids\":[1,2,4]}\n"
      "{\"timestamp\":9,\"input_length\":1100,\"output_length\":0,\"hash_ids\":[1,2,3]}\n");
  EXPECT_EQ(trace.requests[2].arrival, 4);
  EXPECT_EQ(count_hits(trace, 4, CountingRule::every_block).hits, 5U);
  EXPECT_EQ(count_hits(trace, 3, CountingRule::every_block).hits, 4U);
  EXPECT_EQ(count_hits(trace, 4, CountingRule::engine).hits, 4U);
}

TEST(Replay, ReadsAzuresTable) {
  const Trace trace = trace_of(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n"
      "2023-11-17 00:00:00.0000000,3180,8\r\n",
      "a.csv");
  ASSERT_EQ(trace.requests.size(), 2U);
  EXPECT_EQ(trace.block_tokens, 0U);
  EXPECT_NEAR(trace.requests[1].arrival, 20576020.04, 0.1);
  EXPECT_EQ(trace.requests[1].input, 3180U);
}

TEST(Replay, DamagedTracesAreRefusedByLine) {
  const std::string good = "{\"timestamp\":5,\"input_length\":100,\"output_length\":2,\"hash_ids\":[1]}\n";
  for (const std::string& bad : {
           std::string("{\"timestamp\":5,\"input_length\":100,\"output_length\":2,\"hash_ids\":[1]"),
           std::string("[]"),
           std::string("{\"timestamp\":6,\"input_length\":600,\"output_length\":2,\"hash_ids\":[1]}"),
           std::string("{\"timestamp\":6,\"input_length\":-1,\"output_length\":2,\"hash_ids\":[1]}"),
           std::string("{\"timestamp\":6,\"input_length\":10,\"output_length\":1e99,\"hash_ids\":[1]}"),
           std::string("{\"timestamp\":4,\"input_length\":100,\"output_length\":2,\"hash_ids\":[1]}"),
           std::string("{\"timestamp\":\"x\",\"input_length\":100,\"output_length\":2,\"hash_ids\":[1]}"),
       }) {
    try {
      trace_of(good + bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_NE(error.line().find("line 2"), std::string::npos) << error.line();
    }
  }
  EXPECT_THROW(trace_of(""), Error);
}

// By hand: blocks of 512, steps of at most 600 tokens that take 10 ms and 0.1 ms a token.
TEST(Replay, SimulatesStepsOverALogicalClock) {
  const Trace trace = trace_of(
      "{\"timestamp\":0,\"input_length\":700,\"output_length\":3,\"hash_ids\":[1,2]}\n"
      "{\"timestamp\":1,\"input_length\":600,\"output_length\":1,\"hash_ids\":[1,3]}\n");
  SimulationOptions options{.step_ms = 10, .token_us = 100};
  options.scheduler = {.blocks = 8, .block_tokens = 512, .tokens_a_step = 600, .chunk = 600};
  const SimulationCounts counts = simulate(trace, options);
  // 600 of the first (70 ms); its last 100 and 88 of the second, whose first block is known by then (28.8 ms); two
  // more tokens of the first (10.1 ms each).
  EXPECT_EQ(counts.steps, 4U);
  EXPECT_EQ(counts.hit_tokens, 512U);
  EXPECT_EQ(counts.computed_tokens, 600U + 188U + 2U);
  EXPECT_NEAR(counts.ms, 70 + 28.8 + 2 * 10.1, 1e-9);
  ASSERT_EQ(counts.first_token_ms.size(), 2U);
  EXPECT_NEAR(counts.first_token_ms[0], 98.8 - 1, 1e-9);
  EXPECT_NEAR(counts.first_token_ms[1], 98.8, 1e-9);
  EXPECT_NEAR(counts.between_tokens_ms.at(0), 10.1, 1e-9);
  EXPECT_EQ(counts.recomputed_tokens, 0U);

  options.first_token_slo_ms = 90;
  options.reject_early = true;
  // The second is seen when 69 ms are gone and 700 tokens stand before its first: 90 ms. The first is just in time.
  EXPECT_EQ(simulate(trace, options).rejected, 1U);
  EXPECT_EQ(simulate(trace, options).late, 0U);
  options.reject_early = false;
  EXPECT_EQ(simulate(trace, options).late, 2U);
}

TEST(Replay, PreemptedTokensAreCountedAgain) {
  std::string text;
  for (int i = 0; i < 4; ++i)
    text +=
        fmt::format("{{\"timestamp\":0,\"input_length\":500,\"output_length\":600,\"hash_ids\":[{}]}}\n", i);
  SimulationOptions options;
  options.scheduler = {.blocks = 6, .block_tokens = 512, .tokens_a_step = 4096, .chunk = 4096};
  const SimulationCounts counts = simulate(trace_of(text), options);
  EXPECT_EQ(counts.finished, 4U);
  EXPECT_GT(counts.preemptions, 0U);
  EXPECT_GT(counts.recomputed_tokens, 0U);
  EXPECT_EQ(counts.computed_tokens, 4 * (500 + 599) + counts.recomputed_tokens);
}

}  // namespace
}  // namespace assay
