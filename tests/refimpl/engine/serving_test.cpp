// The serving engine against each request alone, for every kind of model.
#include "refimpl/claims/faults.h"
#include "refimpl/speculation/lookup_drafter.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/system/error.h"
#include "core/system/sanitizer.h"
#include "refimpl/block_store/disk_level.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::source_dir() / "data/models"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// More by ASSAY_SCHEDULES=N: so many for each model.
std::uint64_t schedules() {
  const char* wanted = std::getenv("ASSAY_SCHEDULES");
  if (wanted == nullptr) return kSanitized ? 3 : 16;
  return std::strtoull(wanted, nullptr, 10);
}

struct LoadedModel {
  LoadedModel(const std::string& name, Precision precision)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(reference_kernels().make({precision}, 1)),
        model(make_model(weights, {})),
        workload(*model, *ops, 7) {}
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  ServingWorkload workload;
};

class Served : public testing::TestWithParam<std::string> {};

TEST_P(Served, IsWhatEachRequestIsAlone) {
  std::size_t hits = 0, preemptions = 0, evictions = 0, together = 0, refused = 0, loaded_blocks = 0;
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    if (kSanitized && precision != Precision::f32) continue;  // minutes
    const LoadedModel loaded(GetParam(), precision);
    for (std::uint64_t seed = 0; seed < schedules(); ++seed) {
      const ScheduleResult result = run_schedule(loaded.workload, random_schedule(loaded.workload, seed));
      ASSERT_EQ(result.wrong, "") << GetParam() << ", seed " << seed;
      hits += result.counts.hit_tokens;
      preemptions += result.counts.preemptions;
      evictions += result.evictions;
      loaded_blocks += result.counts.loaded_blocks;
      refused += result.counts.guessed - result.counts.accepted;
      together = std::max(together, result.counts.most_texts);
    }
  }
  if (kSanitized) return;  // so few need not have met everything
  EXPECT_GT(hits, 0U);
  EXPECT_GT(preemptions, 0U);
  EXPECT_GT(evictions, 0U);
  EXPECT_GT(loaded_blocks, 0U);
  EXPECT_GT(together, 3U);
  EXPECT_GT(refused, 0U);
}

// deepseek-v3: its drafts in the engine are those of the whole text read at once.
TEST(Serving, PredictionLayersSayInTheEngineWhatTheySayAtOnce) {
  const LoadedModel loaded("deepseek-v3", Precision::f32);
  EXPECT_EQ(draft_difference(loaded.workload, *loaded.model), 0);
}

TEST(PromptLookup, SaysWhatStoodBehindTheNewestTokensLast) {
  const auto looked = [](std::vector<TokenId> text, std::size_t most) { return looked_up(text, most); };
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(looked({1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}, 2),
            (Ids{4, 9}));                                    // the longer match, though the older one
  EXPECT_EQ(looked({7, 3, 4, 7, 3, 5, 3}, 3), (Ids{5, 3}));  // of equal ones the last
  EXPECT_EQ(looked({1, 2, 3}, 3), Ids{});
  EXPECT_EQ(looked({5, 5}, 3), (Ids{5}));
  EXPECT_EQ(looked({5, 5}, 0), Ids{});
  EXPECT_EQ(looked({}, 3), Ids{});
}

// A text that repeats itself takes fewer steps than it has tokens, and is the same.
TEST(Serving, GuessesSaveSteps) {
  const LoadedModel loaded("llama", Precision::f32);
  const ServingRequest request = {.text = {.prompt = {1, 2, 3}, .max_new_tokens = 40}};
  std::vector<TokenId> plain;
  std::size_t steps = 0;
  for (const std::size_t guesses : {0U, 4U}) {
    ServingEngine engine(
        *loaded.model, *loaded.ops,
        {.cache = {.blocks = 20, .block_tokens = 4},
         .speculation = {.source = std::make_shared<LookupDrafts>(), .shape = TreeShape(guesses, 1)}});
    const std::size_t number = engine.submit(request);
    while (engine.step()) {
    }
    if (guesses == 0) {
      plain = engine.result(number).ids;
      steps = engine.counts().steps;
      continue;
    }
    EXPECT_EQ(engine.result(number).ids, plain);
    EXPECT_EQ(engine.counts().steps, steps - engine.counts().accepted);
    EXPECT_GT(engine.counts().accepted, 0U);
  }
}

TEST(Serving, ARequestThatCanNeverFitIsRefusedAndTheOthersGoOn) {
  const LoadedModel loaded("llama", Precision::f32);
  ServingEngine engine(*loaded.model, *loaded.ops, {.cache = {.blocks = 2, .block_tokens = 4}});
  EXPECT_THROW(engine.submit({.text = {.prompt = std::vector<TokenId>(9, 1)}}), Error);
  EXPECT_THROW(engine.submit({.text = {.prompt = {}}}), Error);
  const std::size_t small = engine.submit({.text = {.prompt = {1, 2, 3}, .max_new_tokens = 2}});
  while (engine.step()) {
  }
  EXPECT_EQ(engine.result(small).ids.size(), 2U);
}

// 2,000 requests: no block is held at the end, and what the engine keeps of one that is over is a few numbers.
TEST(Serving, AfterManyRequestsNothingIsHeld) {
  const LoadedModel loaded("llama", Precision::f32);
  ServingEngine engine(*loaded.model, *loaded.ops, {.cache = {.blocks = 12, .block_tokens = 4}});
  for (std::size_t i = 0; i < 2000; ++i) {
    const auto first = static_cast<TokenId>(i % 7);
    engine.submit(
        {.text = {.prompt = {first, 2, 3, 4, 5, static_cast<TokenId>(i % 80)}, .max_new_tokens = 2}});
    if (i % 5 == 0) {
      engine.cancel(i);
      engine.forget(i);
    }
    engine.step();
  }
  EXPECT_THROW(engine.forget(1999), Error);  // it is under way
  while (engine.step()) {
  }
  const BlockPool& pool = *engine.scheduler().pools()[0];
  EXPECT_EQ(pool.free_blocks(), 12U);
  EXPECT_EQ(pool.queue().size(), 12U);
  EXPECT_GT(engine.counts().hit_tokens, 0U);
  EXPECT_EQ(engine.result(1999).ids.size(), 2U);
  engine.forget(1999);
  EXPECT_THROW(engine.result(1999), std::out_of_range);
}

// 2,000 requests that fork, are preempted, cancelled and forgotten, before a second level of the pool: when it is idle
// the engine has as much memory as it had early on, but for a place a request.
TEST(Serving, MemoryStaysFlatOverManyRequests) {
  if (kSanitized) GTEST_SKIP() << "sanitizers set aside more memory than any bound";
  const LoadedModel loaded("llama", Precision::f32);
  const test::TempDir folder;
  ServingParts parts;
  parts.outer = [&](Ops& ops, const BlockStorage& storage) {
    return std::make_unique<DiskLevel>(ops, storage, DiskOptions{folder.path(), 200'000});
  };
  ServingEngine engine(*loaded.model, *loaded.ops, {.cache = {.blocks = 12, .block_tokens = 4}}, parts);
  constexpr std::size_t kRequests = 2000, kAtOnce = 50, kEarly = 500, kPlace = 64;
  std::size_t early = 0;
  for (std::size_t i = 0; i < kRequests; ++i) {
    const auto tail = static_cast<TokenId>(i % 80);
    engine.submit(
        {.text = {.prompt = {static_cast<TokenId>(i % 7), 2, 3, 4, 5, 6, tail, 9}, .max_new_tokens = 6},
         .samples = 1 + i % 3 / 2});
    if (i % 5 == 0) engine.cancel(i);
    if (i % 2 == 0) engine.step();
    if ((i + 1) % kAtOnce != 0) continue;
    while (engine.step()) {
    }
    for (std::size_t over = i + 1 - kAtOnce; over <= i; ++over) engine.forget(over);
    if (i + 1 == kEarly) early = mallinfo2().uordblks + mallinfo2().hblkhd;
  }
  const std::size_t late = mallinfo2().uordblks + mallinfo2().hblkhd;
  EXPECT_LT(late, early + (kRequests - kEarly) * kPlace + (std::size_t{64} << 10));
  RecordProperty("grown", static_cast<int>(late) - static_cast<int>(early));
  EXPECT_EQ(engine.scheduler().pools()[0]->free_blocks(), 12U);
  EXPECT_GT(engine.counts().hit_tokens, 0U);
  EXPECT_GT(engine.counts().preemptions, 0U);
  EXPECT_GT(engine.counts().loaded_blocks, 0U);
}

INSTANTIATE_TEST_SUITE_P(Models, Served, testing::ValuesIn(model_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace assay
