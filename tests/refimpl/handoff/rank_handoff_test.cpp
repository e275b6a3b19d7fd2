// Another number of ranks on either side of a hand-off: the ranks of a tensor-parallel prefill feed one decoder, and one prefill
// the ranks of a decoder. The text is that of one process that adds in the ranks' tree, bit for bit; bytes are the formula's.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "core/system/error.h"
#include "refimpl/claims/handoff_run.h"
#include "refimpl/ranks/ranked_model.h"
#include "refimpl/ranks/thread_transport.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

constexpr std::size_t kPromptTokens = 21, kNewTokens = 5;
constexpr std::chrono::milliseconds kRankLimit{10'000};

class RankHandoff {
 public:
  explicit RankHandoff(const std::string& name)
      : name_(name),
        weights_(folder(), 1),
        model_(make_model(weights_, {})),
        whole_(cache_shape(*model_, weights_.tree())) {
    for (std::size_t i = 0; i < kPromptTokens; ++i)
      request_.text.prompt.push_back(static_cast<TokenId>((7 * i * i + 3 * i + 5) % model_->vocabulary()));
    request_.text.max_new_tokens = kNewTokens;
  }
  std::filesystem::path folder() const { return test::source_dir() / "data/models" / name_; }
  // Of these that the model can be cut into: heads that are dealt out, and repeated.
  std::vector<std::size_t> numbers_of_ranks() const {
    std::vector<std::size_t> numbers;
    for (const std::size_t ranks : {2U, 4U})
      if (refusals_to_run(weights_.tree(), {.tp = ranks}).empty()) numbers.push_back(ranks);
    EXPECT_FALSE(numbers.empty());
    return numbers;
  }
  const CacheShape& whole() const { return whole_; }
  const ServingRequest& request() const { return request_; }

  // Of all ranks at once: `body(with)` at each, with what it has of the model.
  template <class Body>
  void at_ranks(std::size_t ranks, const Body& body) const {
    RankedSettings settings;
    settings.arithmetic = {Precision::f32};
    settings.grid = {.tp = ranks};
    run_on_threads(ranks, kRankLimit, [&](Transport& transport) {
      RankedModel ranked(folder(), settings, transport);
      const CacheShape shape =
          shape_of_rank(whole_, ranked.model().cache_widths(), ranks, ranked.place().rank);
      body(HandoffModel{ranked.model(), ranked.ops(), shape, handoff_identity(name_)});
      ranked.model().keep_company(ranked.ops());
    });
  }
  HandedRun uncut() const {
    HandedRun run;
    at_ranks(1, [&](const HandoffModel& with) { run = write_uncut(with, request_, {}); });
    return run;
  }

 private:
  std::string name_;
  Weights weights_;
  std::unique_ptr<LanguageModel> model_;
  CacheShape whole_;
  ServingRequest request_;
};

// What each of several prefill ranks sends, and what one decoder makes of it. `made`: of rank 1, to plant something in.
struct Fed {
  HandedRun run;
  std::uint64_t row_bytes = 0;  // of all ranks
};
Fed feed_one(const RankHandoff& handoff, std::size_t ranks, const HandoffOptions& options,
             const HandoffMade& made = {}, bool last_one_dies = false) {
  Fed fed;
  std::vector<PartQueue> queues(ranks);
  std::mutex mutex;
  std::jthread prefill([&] {
    try {
      handoff.at_ranks(ranks, [&](const HandoffModel& with) {
        const std::size_t rank = with.shape.rank;
        const HandoffSent sent =
            hand_over(with, handoff.request().text, options, queues[rank], rank == 1 ? made : HandoffMade());
        const std::lock_guard lock(mutex);
        fed.row_bytes += sent.row_bytes;
      });
    } catch (const Error&) {  // told by the decoder
    }
    for (PartQueue& queue : queues) queue.end();
  });
  std::vector<PartSource*> sources;
  for (PartQueue& queue : queues) sources.push_back(&queue);
  PartQueue nothing;
  nothing.end();
  if (last_one_dies) sources.back() = &nothing;
  handoff.at_ranks(1, [&](const HandoffModel& with) {
    take_and_write(with, sources, handoff.request(), {.block_tokens = 4}, {}, fed.run);
  });
  prefill.join();
  return fed;
}

class RankHandoffs : public testing::TestWithParam<const char*> {};

TEST_P(RankHandoffs, RanksOfAPrefillFeedOneDecoder) {
  const RankHandoff handoff(GetParam());
  const HandedRun uncut = handoff.uncut();
  for (const std::size_t ranks : handoff.numbers_of_ranks()) {
    for (const bool by_layer : {true, false}) {
      const HandoffOptions options{.by_layer = by_layer,
                                   .first = by_layer ? FirstToken::id : FirstToken::hidden,
                                   .chunk = by_layer ? 5U : 512U};
      const Fed fed = feed_one(handoff, ranks, options);
      ASSERT_EQ(difference(uncut, fed.run), "") << ranks << " ranks";
      EXPECT_TRUE(fed.run.checked);
      // Each head and latent goes once, however many ranks have it.
      const std::uint64_t formula = kPromptTokens * token_bytes(handoff.whole(), 4).rows;
      EXPECT_EQ(fed.row_bytes, handoff.whole().has_windows() ? fed.row_bytes : formula) << ranks << " ranks";
    }
  }
}

TEST_P(RankHandoffs, OnePrefillFeedsRanksOfADecoder) {
  const RankHandoff handoff(GetParam());
  const HandedRun uncut = handoff.uncut();
  for (const std::size_t ranks : handoff.numbers_of_ranks()) {
    std::vector<PartQueue> queues(ranks);
    std::vector<PartSink*> sinks;
    for (PartQueue& queue : queues) sinks.push_back(&queue);
    HandoffSent sent;
    std::jthread prefill([&] {
      handoff.at_ranks(1, [&](const HandoffModel& with) {
        sent = hand_over(with, handoff.request().text, {.chunk = 8}, sinks);
      });
      for (PartQueue& queue : queues) queue.end();
    });
    std::vector<HandedRun> runs(ranks);
    std::vector<std::uint64_t> a_token(ranks);
    handoff.at_ranks(ranks, [&](const HandoffModel& with) {
      const std::size_t rank = with.shape.rank;
      a_token[rank] = token_bytes(with.shape, 4).rows;
      take_and_write(with, {&queues[rank]}, handoff.request(), {.block_tokens = 4}, {}, runs[rank]);
    });
    prefill.join();
    std::uint64_t wanted = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(difference(uncut, runs[rank]), "") << "rank " << rank << " of " << ranks;
      EXPECT_TRUE(runs[rank].checked);
      wanted += kPromptTokens * a_token[rank];
    }
    EXPECT_EQ(sent.row_bytes, handoff.whole().has_windows() ? sent.row_bytes : wanted) << ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RankHandoffs, testing::Values("llama", "deepseek-v3", "qwen3-moe", "gemma3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Of one rank a number is other than in its cache; a rank is not there; two say other things.
TEST(RankHandoff, WhatOneOfThemGotWrongIsSeen) {
  const RankHandoff handoff("llama");
  HandoffMade altered;
  altered.stage = [](std::vector<double> numbers) {
    numbers.front() += 1;
    return std::make_shared<std::vector<double>>(std::move(numbers));
  };
  const Fed wrong = feed_one(handoff, 2, {}, altered);
  EXPECT_NE(wrong.run.refused.find("the decoder's cache is not what the prefill had in layer 0"),
            std::string::npos)
      << wrong.run.refused;
  const Fed dead = feed_one(handoff, 2, {}, {}, true);
  EXPECT_NE(dead.run.refused.find("the prefill ended before its hand-off was whole"), std::string::npos)
      << dead.run.refused;
}

TEST(RankHandoff, SealsOfRanksAreJoined) {
  const auto key = [](std::uint8_t of) {
    BlockKey k;
    k.bytes[0] = of;
    return k;
  };
  const LayerSeal first{{key(1), key(2)}, {key(3), key(4)}, {}, 0},
      last{{key(2), key(5)}, {key(4), key(6)}, {}, 1};
  const std::vector<LayerSeal> joined = merged_seals({{first}, {last}});
  EXPECT_EQ(joined, (std::vector<LayerSeal>{{{key(1), key(2), key(5)}, {key(3), key(4), key(6)}, {}, 0}}));
  EXPECT_EQ(first_difference(joined, {last}), "");
  EXPECT_EQ(first_difference(joined, {{{key(2), key(9)}, last.values, {}, 1}}), "layer 0: keys of head 1");
  LayerSeal other = last;
  other.keys[0] = key(7);
  EXPECT_THROW(merged_seals({{first}, {other}}), Error);
  other = last;
  other.first_head = 3;  // head 2 is nobody's
  EXPECT_THROW(merged_seals({{first}, {other}}), Error);
}

TEST(RankHandoff, StatesAndOddCutsAreRefused) {
  const RankHandoff jamba("jamba");
  std::vector<CacheWidth> jambas;
  for (const CacheShape::Layer& layer : jamba.whole().layers) jambas.push_back(layer.width);
  EXPECT_THROW(shape_of_rank(jamba.whole(), jambas, 2, 0), Error);
  const RankHandoff llama("llama");
  std::vector<CacheWidth> widths;
  for (const CacheShape::Layer& layer : llama.whole().layers) widths.push_back(layer.width);
  EXPECT_THROW(shape_of_rank(llama.whole(), widths, 2, 0), Error);  // nothing was cut
  EXPECT_NO_THROW(shape_of_rank(llama.whole(), widths, 1, 0));
}

}  // namespace
}  // namespace assay
