// The scheduler and its pools by themselves: texts are counts and keys.
#include "refimpl/engine/scheduler.h"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>

#include "core/system/error.h"

namespace assay {
namespace {

// A text and its tokens, keyed as the engine does.
struct Text {
  std::vector<TokenId> ids;
  ServedText text;

  std::size_t block;

  Text(std::size_t number, const std::vector<TokenId>& tokens, std::size_t block_tokens = 4)
      : block(block_tokens) {
    text.number = number;
    text.ids = &ids;
    text.keys = {BlockHasher().root("")};
    grow(tokens);
  }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  void grow(const std::vector<TokenId>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
    text.tokens = ids.size();
    while (text.keys.size() <= ids.size() / block) {
      const std::size_t first = (text.keys.size() - 1) * block;
      text.keys.push_back(BlockHasher().next(text.keys.back(), std::span(ids).subspan(first, block)));
    }
  }
};

std::vector<TokenId> counted(std::size_t count, TokenId first = 0) {
  std::vector<TokenId> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

StepPlan stepped(Scheduler& scheduler) {
  StepPlan plan = scheduler.plan();
  scheduler.complete(plan);
  return plan;
}

// vLLM's design page on prefix caching: 10 blocks of 4 tokens, three requests.
TEST(Scheduler, ReproducesTheWorkedExampleOfVllm) {
  Scheduler scheduler({.blocks = 10, .block_tokens = 4});
  Text zero(0, counted(15));
  scheduler.add(zero.text);
  stepped(scheduler);
  EXPECT_EQ(zero.text.tables[0], (std::vector<BlockId>{0, 1, 2, 3}));
  zero.grow({15});
  stepped(scheduler);
  zero.grow({16});
  stepped(scheduler);
  EXPECT_EQ(zero.text.tables[0], (std::vector<BlockId>{0, 1, 2, 3, 4}));

  std::vector<TokenId> ids = counted(10);
  for (const TokenId id : counted(4, 100)) ids.push_back(id);
  Text one(1, ids);
  scheduler.add(one.text);
  stepped(scheduler);
  EXPECT_EQ(one.text.hit, 8U);  // the third block agrees in two of four tokens only
  EXPECT_EQ(one.text.tables[0], (std::vector<BlockId>{0, 1, 5, 6}));
  EXPECT_EQ(scheduler.pools()[0]->holders(0), 2U);

  scheduler.finish(zero.text);
  scheduler.finish(one.text);
  EXPECT_EQ(scheduler.pools()[0]->queue(), (std::vector<BlockId>{7, 8, 9, 4, 3, 2, 6, 5, 1, 0}));

  ids = counted(12);
  for (const TokenId id : counted(17, 200)) ids.push_back(id);
  Text two(2, ids);
  scheduler.add(two.text);
  stepped(scheduler);
  EXPECT_EQ(two.text.hit, 12U);
  EXPECT_EQ(two.text.tables[0], (std::vector<BlockId>{0, 1, 2, 7, 8, 9, 4, 3}));
}

// A whole prompt that is known is computed from its last block on: its last logits are wanted.
TEST(Scheduler, NeverHitsAllTokens) {
  for (const std::size_t length : {7U, 8U, 9U}) {
    Scheduler scheduler({.blocks = 10, .block_tokens = 4});
    Text first(0, counted(length)), again(1, counted(length));
    scheduler.add(first.text);
    stepped(scheduler);
    scheduler.add(again.text);
    stepped(scheduler);
    EXPECT_EQ(again.text.hit, length == 9 ? 8U : 4U) << length;
  }
}

TEST(Scheduler, WritesBeforeItReads) {
  Scheduler scheduler({.blocks = 100, .block_tokens = 4, .tokens_a_step = 10, .chunk = 6});
  Text a(0, counted(5)), b(1, counted(20, 50));
  scheduler.add(a.text);
  scheduler.add(b.text);
  StepPlan plan = stepped(scheduler);
  ASSERT_EQ(plan.feeds.size(), 2U);
  EXPECT_EQ(plan.feeds[0].tokens, 5U);
  EXPECT_EQ(plan.feeds[1].tokens, 5U);  // what the budget of 10 leaves
  a.grow({7});
  plan = stepped(scheduler);
  ASSERT_EQ(plan.feeds.size(), 2U);
  EXPECT_EQ(plan.feeds[0].text, &a.text);
  EXPECT_EQ(plan.feeds[0].tokens, 1U);
  EXPECT_EQ(plan.feeds[1].tokens, 6U);  // a chunk
}

TEST(Scheduler, TheLastToComeGivesUpItsBlocks) {
  Scheduler scheduler({.blocks = 4, .block_tokens = 2});
  Text a(0, counted(4), 2), b(1, counted(4, 50), 2);
  scheduler.add(a.text);
  scheduler.add(b.text);
  stepped(scheduler);
  a.grow({90});
  b.grow({91});
  const StepPlan plan = stepped(scheduler);
  EXPECT_EQ(plan.preemptions, 1U);
  ASSERT_EQ(plan.feeds.size(), 1U);
  EXPECT_EQ(plan.feeds[0].text, &a.text);
  EXPECT_TRUE(b.text.preempted);
  EXPECT_EQ(b.text.cached, 0U);
  scheduler.finish(a.text);
  const StepPlan after = stepped(scheduler);
  ASSERT_EQ(after.feeds.size(), 1U);
  EXPECT_EQ(after.feeds[0].text, &b.text);
}

// Blocks that were taken for guesses which were wrong are no part of what is swapped out.
TEST(Scheduler, WhatIsSwappedOutEndsWithTheCachedTokens) {
  Scheduler scheduler({.blocks = 12, .block_tokens = 1, .preemption = Preemption::swap});
  Text first(0, counted(3)), second(1, counted(3, 50));
  scheduler.add(first.text);
  scheduler.add(second.text);
  stepped(scheduler);
  second.grow({60});
  second.text.tokens += 4;
  second.text.guessed = 4;
  StepPlan plan = scheduler.plan();
  ASSERT_EQ(plan.feeds.size(), 1U);
  plan.feeds[0].tokens = 1;
  second.text.tokens -= 4;
  second.text.guessed = 0;
  scheduler.complete(plan);
  EXPECT_EQ(second.text.tables[0].size(), 8U);
  first.grow(counted(3, 70));
  plan = stepped(scheduler);
  ASSERT_EQ(plan.swapped_out.size(), 1U);
  EXPECT_EQ(plan.swapped_out[0].text, &second.text);
  EXPECT_EQ(plan.swapped_out[0].tables[0].size(), second.text.cached);
}

TEST(Scheduler, PoliciesChooseWhoComesFirst) {
  const auto first_admitted = [](Policy policy) {
    Scheduler scheduler({.blocks = 100, .block_tokens = 4, .texts_at_once = 1, .policy = policy});
    Text known(0, counted(12));
    scheduler.add(known.text);
    stepped(scheduler);
    scheduler.finish(known.text);
    std::deque<Text> texts;
    texts.emplace_back(1, counted(10, 300));
    texts.emplace_back(2, counted(5, 400));
    texts.emplace_back(3, counted(14));  // 12 of which are known
    texts.emplace_back(4, counted(10, 500));
    texts[3].text.priority = 1;
    for (Text& text : texts) scheduler.add(text.text);
    return stepped(scheduler).feeds.at(0).text->number;
  };
  EXPECT_EQ(first_admitted(Policy::first_come), 1U);
  EXPECT_EQ(first_admitted(Policy::shortest_first), 2U);
  EXPECT_EQ(first_admitted(Policy::longest_prefix), 3U);
  EXPECT_EQ(first_admitted(Policy::priority), 4U);
}

TEST(Scheduler, WhatCanNeverFitIsRefusedAtOnceAndStallsNobody) {
  Scheduler scheduler({.blocks = 2, .block_tokens = 4});
  Text large(0, counted(9)), small(1, counted(8, 50));
  EXPECT_THROW(scheduler.add(large.text), Error);
  scheduler.add(small.text);
  EXPECT_EQ(stepped(scheduler).feeds.size(), 1U);
}

// Of layers that look 4 tokens back no block is held that lies further back.
TEST(Scheduler, WindowsHoldTheirWindow) {
  Scheduler scheduler({.blocks = 20, .block_tokens = 2, .windows = {0, 4}});
  Text text(0, counted(11), 2);
  scheduler.add(text.text);
  stepped(scheduler);
  EXPECT_EQ(scheduler.pools()[0]->free_blocks(), 14U);
  // Token 11 sees tokens 8 … 11: blocks 4 and 5.
  EXPECT_EQ(std::count(text.text.tables[1].begin(), text.text.tables[1].end(), -1), 4);
  EXPECT_EQ(scheduler.pools()[1]->free_blocks(), 18U);
  // Another one of the same ten tokens finds what its own window needs.
  Text again(1, counted(11), 2);
  scheduler.add(again.text);
  stepped(scheduler);
  EXPECT_EQ(again.text.hit, 10U);
}

TEST(BlockPool, ReleasedTwiceIsAnError) {
  BlockPool pool(2);
  const BlockId block = *pool.take();
  pool.release(block);
  EXPECT_THROW(pool.release(block), Error);
}

// A key alone is not believed: its tokens and what stands before them are compared.
TEST(BlockPool, AHitIsComparedTokenByToken) {
  BlockPool pool(2);
  const BlockHasher hasher;
  const BlockKey root = hasher.root("a"), other = hasher.root("b");
  const std::vector<TokenId> tokens = {1, 2}, wrong = {1, 3};
  const BlockId block = *pool.take();
  const BlockKey key = hasher.next(root, tokens);
  pool.know(block, {key, root, tokens});
  EXPECT_EQ(pool.find(key, root, tokens), block);
  EXPECT_EQ(pool.find(key, root, wrong), std::nullopt);
  EXPECT_EQ(pool.find(key, other, tokens), std::nullopt);
  EXPECT_FALSE(hasher.next(root, tokens) == hasher.next(other, tokens));
  EXPECT_FALSE(hasher.next(root, tokens) == hasher.next(root, wrong));
}

// As in vLLM: of blocks with the same content each is found while it is there.
TEST(BlockPool, ADuplicateIsFoundWhenTheFirstIsGone) {
  BlockPool pool(4);
  const BlockKey root = BlockHasher().root(""), key = BlockHasher().next(root, std::vector<TokenId>{1});
  const std::vector<TokenId> tokens = {1};
  const auto found = [&] { return pool.find(key, root, tokens); };
  for (int i = 0; i < 4; ++i) pool.know(*pool.take(), {key, root, tokens});
  EXPECT_EQ(found(), 0);
  pool.release(2);
  EXPECT_EQ(pool.take(), 2);  // from the middle
  pool.release(0);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(found(), 1);
  pool.release(3);
  EXPECT_EQ(pool.take(), 3);  // the last
  EXPECT_EQ(found(), 1);
  pool.know(0, {key, root, tokens});
  pool.release(1);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(found(), 0);
  pool.release(0);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(found(), std::nullopt);
  EXPECT_EQ(pool.evictions(), 5U);
}

}  // namespace
}  // namespace assay
