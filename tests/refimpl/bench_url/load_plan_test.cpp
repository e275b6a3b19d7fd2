#include "refimpl/bench_url/load_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "refimpl/bench_url/prompts.h"

namespace assay {
namespace {

TEST(LoadPlan, ArrivalsAreDrawnBySeed) {
  const LoadPlan a = poisson_plan({2000, 10, 5}, 4, 1), again = poisson_plan({2000, 10, 5}, 4, 1),
                 other = poisson_plan({2000, 10, 5}, 4, 2);
  double before = 0;
  std::size_t short_gaps = 0;
  for (std::size_t i = 0; i < a.requests.size(); ++i) {
    EXPECT_GE(a.requests[i].due, before);
    EXPECT_EQ(a.requests[i].due, again.requests[i].due);
    short_gaps += a.requests[i].due - before < 0.25 ? 1 : 0;
    before = a.requests[i].due;
  }
  EXPECT_NE(a.requests[0].due, other.requests[0].due);
  EXPECT_NEAR(before / 2000, 0.25, 4 * 0.25 / std::sqrt(2000.0));  // mean 1 / rate, four of its deviations
  EXPECT_NEAR(static_cast<double>(short_gaps) / 2000, 0.632, 4 * 0.011);  // 1 − 1/e of an exponential
}

TEST(LoadPlan, TracesAreScaled) {
  Trace trace;
  trace.block_tokens = 4;
  trace.requests = {{.arrival = 0, .input = 6, .output = 0, .blocks = {1, 2}},
                    {.arrival = 3000, .input = 4, .output = 9, .blocks = {1}}};
  const LoadPlan plan = trace_plan(trace, 0.5, std::nullopt);
  ASSERT_EQ(plan.requests.size(), 2U);
  EXPECT_DOUBLE_EQ(plan.requests[1].due, 1.5);
  EXPECT_EQ(plan.requests[0].output_tokens, 1U);
  EXPECT_EQ(trace_plan(trace, 1, 1).requests.size(), 1U);
}

using Ids = std::vector<TokenNumber>;

TEST(LoadPrompts, ShareWhatTheirBlocksShare) {
  PromptPool pool;
  for (TokenNumber id = 100; id < 4100; ++id) pool.ids.push_back(id);
  LoadPlan plan{{{0, 6, 1, {1, 2}}, {0, 8, 1, {1, 3}}, {0, 6, 1, {}}, {0, 9, 1, {1, 2}}}, 4};
  std::vector<Ids> made;
  for (std::size_t i = 0; i < 4; ++i) {
    made.push_back(std::get<Ids>(make_prompt(pool, plan, i, 7)));
    EXPECT_EQ(made.back().size(), plan.requests[i].prompt_tokens);
  }
  EXPECT_TRUE(std::equal(made[0].begin(), made[0].begin() + 4, made[1].begin()));
  EXPECT_NE(made[0][4], made[1][4]);
  EXPECT_NE(made[0][0], made[2][0]);
  EXPECT_TRUE(
      std::equal(made[0].begin(), made[0].end(), made[3].begin()));  // a trace that lists too few blocks
  EXPECT_EQ(std::get<Ids>(make_prompt(pool, plan, 2, 7)), made[2]);
  EXPECT_NE(std::get<Ids>(make_prompt(pool, plan, 2, 8)), made[2]);
}

TEST(LoadPrompts, OfWordsHaveSoManyTokens) {
  const PromptPool pool{.ids = {}, .first_word = "Say", .words = {"a", "b", "c"}, .overhead = 5};
  const LoadPlan plan = closed_plan({3, 8, 1});
  EXPECT_EQ(std::get<std::string>(make_prompt(pool, plan, 0, 1)).size(), 9U);  // "Say" and three words
  EXPECT_NO_THROW(check_prompts(pool, plan));
  EXPECT_THROW(check_prompts(pool, closed_plan({1, 4, 1})), Error);
}

}  // namespace
}  // namespace assay
