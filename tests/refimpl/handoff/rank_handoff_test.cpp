// Other grids of ranks on the two sides of a hand-off: tensor-parallel ranks, stages, experts dealt out, copies. The text is
// that of one process that adds in the ranks' tree, bit for bit; bytes are the formula's.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/system/error.h"
#include "refimpl/claims/handoff_run.h"
#include "refimpl/handoff/rank_shape.h"
#include "refimpl/ranks/ranked_model.h"
#include "refimpl/ranks/thread_transport.h"
#include "refimpl/speculation/layer_drafter.h"
#include "tests/refimpl/models/kin_families.h"
#include "tests/refimpl/models/made_weights.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

constexpr std::size_t kPromptTokens = 21, kNewTokens = 5;
constexpr std::chrono::milliseconds kRankLimit{10'000};

std::filesystem::path model_of(const std::string& name) {
  return test::source_dir() / "data/models" / name;
}

class RankHandoff {
 public:
  explicit RankHandoff(std::filesystem::path folder, Precision precision = Precision::f32)
      : folder_(std::move(folder)),
        precision_(precision),
        weights_(folder_, 1),
        model_(make_model(weights_, {})),
        whole_(cache_shape(*model_, weights_.tree())) {
    const std::size_t tokens = std::min(kPromptTokens, model_->context() - kNewTokens);
    for (std::size_t i = 0; i < tokens; ++i)
      request_.text.prompt.push_back(static_cast<TokenId>((7 * i * i + 3 * i + 5) % model_->vocabulary()));
    request_.text.max_new_tokens = kNewTokens;
  }
  // MiniMax M3's rows end with keys of an index, which every rank has whole: no part of a hand-off tells them apart.
  bool can_be(const RankGrid& grid) const {
    const auto& attention = weights_.tree().attention;
    const bool has_index = std::any_of(attention.begin(), attention.end(), [](const AttentionGeometry& g) {
      return g.kind == AttentionGeometry::Kind::heads && g.indexer_heads != 0 && !g.keys_are_values;
    });
    return refusals_to_run(weights_.tree(), grid).empty() && !(has_index && grid.tp > 1);
  }
  const LanguageModel& model() const { return *model_; }
  const CacheShape& whole() const { return whole_; }
  CacheShape shape(const RankGrid& grid, std::size_t rank) const {
    return shape_of_rank(whole_, *model_, {grid, rank});
  }
  const ServingRequest& request() const { return request_; }

  // Of all ranks at once: `body(with)` at those that have the text, with what each has of the model.
  template <class Body>
  void at_ranks(const RankGrid& grid, const Body& body) const {
    RankedSettings settings;
    settings.arithmetic = {precision_};
    settings.grid = grid;
    run_on_threads(grid.ranks(), kRankLimit, [&](Transport& transport) {
      RankedModel ranked(folder_, settings, transport);
      if (ranked.place().copy() == 0) {
        const CacheShape own = shape(grid, ranked.place().rank);
        require_widths(own, ranked.model().cache_widths());
        body(HandoffModel{ranked.model(), ranked.ops(), own, handoff_identity(folder_.string())});
      }
      ranked.model().keep_company(ranked.ops());
    });
  }
  HandedRun uncut(bool guesses = false) const {
    HandedRun run;
    at_ranks({},
             [&](const HandoffModel& with) { run = write_uncut(with, request_, decoder(with, guesses)); });
    return run;
  }
  // With `guesses` of the model's own prediction layers, cut as the rest is.
  static HandedDecoder decoder(const HandoffModel& with, bool guesses) {
    HandedDecoder decoder{.block_tokens = 4};
    if (guesses)
      decoder.speculation = {.source = std::make_shared<LayerDrafts>(with.model, with.ops), .shape = {1, 1}};
    return decoder;
  }

 private:
  std::filesystem::path folder_;
  Precision precision_;
  Weights weights_;
  std::unique_ptr<LanguageModel> model_;
  CacheShape whole_;
  ServingRequest request_;
};

struct Between {
  RankGrid from, to;
  std::size_t senders() const { return from.tp * from.pp; }  // of copies the first
  std::size_t takers() const { return to.tp * to.pp; }
  std::string text() const { return from.text() + " to " + to.text(); }
};

// What each rank of the decoder wrote, of what each rank of the prefill sent it. `made`: of the prefill's rank 1, to plant
// something in; `dies`: its last rank sends nothing.
struct Fed {
  std::vector<HandedRun> runs;
  std::uint64_t row_bytes = 0, state_bytes = 0, hidden_bytes = 0;
};
class Feeding {
 public:
  Feeding(const RankHandoff& handoff, const Between& between)
      : handoff_(handoff), between_(between), queues_(between.senders() * between.takers()) {
    fed_.runs.resize(between.takers());
  }
  Fed feed(const HandoffOptions& options, const HandoffMade& made = {}, bool dies = false,
           bool guesses = false) {
    std::jthread prefill([&] {
      try {
        handoff_.at_ranks(between_.from, [&](const HandoffModel& with) { send(with, options, made); });
      } catch (const Error&) {  // told by the decoder
      }
      for (PartQueue& queue : queues_) queue.end();
    });
    PartQueue nothing;
    nothing.end();
    handoff_.at_ranks(between_.to, [&](const HandoffModel& with) {
      std::vector<PartSource*> sources;
      for (std::size_t s = 0; s < between_.senders(); ++s) sources.push_back(&queue(s, with.shape.rank));
      if (dies) sources.back() = &nothing;
      take_and_write(with, sources, handoff_.request(), RankHandoff::decoder(with, guesses), {},
                     fed_.runs[with.shape.rank]);
    });
    prefill.join();
    return std::move(fed_);
  }

 private:
  PartQueue& queue(std::size_t sender, std::size_t taker) {
    return queues_.at(sender * between_.takers() + taker);
  }
  void send(const HandoffModel& with, const HandoffOptions& options, const HandoffMade& made) {
    std::vector<HandoffTaker> takers;
    for (std::size_t t = 0; t < between_.takers(); ++t) {
      takers.push_back({.sink = &queue(with.shape.rank, t)});
      if (between_.takers() > 1)
        takers.back().shape = handoff_.shape({.tp = between_.to.tp, .pp = between_.to.pp}, t);
    }
    const HandoffSent sent = hand_over(with, handoff_.request().text, options, takers,
                                       with.shape.rank == 1 ? made : HandoffMade());
    const std::lock_guard lock(mutex_);
    fed_.row_bytes += sent.row_bytes;
    fed_.state_bytes += sent.state_bytes;
    fed_.hidden_bytes += sent.hidden_bytes;
  }

  const RankHandoff& handoff_;
  const Between& between_;
  std::vector<PartQueue> queues_;
  std::mutex mutex_;
  Fed fed_;
};

const Between kBetween[] = {
    {{.tp = 2}, {}},
    {{.tp = 4}, {}},
    {{}, {.tp = 2}},
    {{}, {.tp = 4}},
    {{.tp = 2}, {.tp = 4}},
    {{.tp = 4}, {.tp = 2}},
    {{.pp = 2}, {}},
    {{}, {.pp = 3}},
    {{.pp = 3}, {.pp = 2}},
    {{.tp = 2, .pp = 2}, {.tp = 2}},
    {{.tp = 2}, {.tp = 2, .pp = 2}},
    {{.tp = 2, .ep = 2}, {.pp = 2}},
    {{.tp = 2, .ep = 4, .dp = 2}, {.ep = 2, .dp = 2}},
};

// Each head, latent and state goes to each taker that keeps it once, however many ranks have it.
void expect_bytes(const RankHandoff& handoff, const Between& between, const Fed& fed, std::size_t width) {
  std::uint64_t rows = 0, states = 0;
  for (std::size_t t = 0; t < between.takers(); ++t) {
    const CacheShape taker = handoff.shape({.tp = between.to.tp, .pp = between.to.pp}, t);
    rows += handoff.request().text.prompt.size() * token_bytes(taker, width).rows;
    for (const CacheShape::Layer& layer : taker.layers)
      for (const StateShape& state : layer.width.states) states += 4 * state.rows * state.columns;
  }
  EXPECT_EQ(fed.row_bytes, handoff.whole().has_windows() ? fed.row_bytes : rows) << between.text();
  EXPECT_EQ(fed.state_bytes, states) << between.text();
}

// How many of the grids the model can be cut into.
std::size_t compare(const RankHandoff& handoff, std::span<const Between> pairs, Precision precision) {
  const HandedRun uncut = handoff.uncut();
  std::size_t compared = 0;
  for (const Between& between : pairs) {
    if (!handoff.can_be(between.from) || !handoff.can_be(between.to)) continue;
    const bool by_layer = ++compared % 2 == 0;
    const Fed fed = Feeding(handoff, between)
                        .feed({.by_layer = by_layer,
                               .first = compared % 3 == 0 ? FirstToken::hidden : FirstToken::id,
                               .chunk = by_layer ? 5U : 512U});
    for (const HandedRun& run : fed.runs) {
      EXPECT_EQ(difference(uncut, run), "") << between.text();
      EXPECT_TRUE(run.checked) << between.text();
    }
    expect_bytes(handoff, between, fed, precision == Precision::bf16 ? 2 : 4);
  }
  return compared;
}

struct Model {
  const char* name;
  std::size_t least;  // pairs of grids
};
class RankHandoffs : public testing::TestWithParam<Model> {};

TEST_P(RankHandoffs, WriteTheTextOfOneProcess) {
  for (const Precision precision : {Precision::f32, Precision::bf16})
    EXPECT_GE(compare(RankHandoff(model_of(GetParam().name), precision), kBetween, precision),
              GetParam().least)
        << name(precision);
}

INSTANTIATE_TEST_SUITE_P(Models, RankHandoffs,
                         testing::Values(Model{"llama", 4}, Model{"deepseek-v3", 12}, Model{"qwen3-moe", 10},
                                         Model{"gemma3", 8}, Model{"qwen3-next", 4}, Model{"qwen3-5-moe", 4},
                                         Model{"jamba", 8}, Model{"mamba", 8}, Model{"mamba2", 8},
                                         Model{"lfm2", 8}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Families told by a table (data/fixtures/kin), with weights made of their names: what their ranks keep is what their shape says,
// whatever they are; and the text is that of one process.
class MadeRankHandoffs : public testing::TestWithParam<std::string> {};

TEST_P(MadeRankHandoffs, WriteTheTextOfOneProcess) {
  std::size_t compared = 0;
  for (const auto& variant :
       nlohmann::json::parse(test::read_file(test::kin_folder() / (GetParam() + ".json")))) {
    SCOPED_TRACE(variant["config"].dump());
    const test::TempDir place;
    test::put_made_model(place.path(), variant["config"].dump());
    const RankHandoff handoff(place.path());
    compared += compare(handoff, std::span(kBetween).first(1), Precision::f32) +
                compare(handoff, std::span(kBetween).last(7), Precision::f32);
  }
  EXPECT_GE(compared, 1U);
}

INSTANTIATE_TEST_SUITE_P(Families, MadeRankHandoffs, testing::ValuesIn(test::kin_families_in_stages()),
                         [](const auto& info) { return info.param; });

// Prediction layers that begin with what the ranks' prefill hands over: the text of one process that adds in the same tree, and
// as many guesses tried and right. States go once to each taker, whoever has them.
class RankDrafts : public testing::TestWithParam<DraftHandoff> {};

TEST_P(RankDrafts, GuessAsOneProcessDoes) {
  const Between pairs[] = {{{.tp = 2}, {}},
                           {{}, {.tp = 2}},
                           {{.tp = 2}, {.tp = 4}},
                           {{.pp = 2}, {.tp = 2}},
                           {{.tp = 2, .ep = 4, .dp = 2}, {.tp = 2, .ep = 2}}};
  const RankHandoff handoff(model_of("deepseek-v3"));
  const HandedRun uncut = handoff.uncut(true);
  ASSERT_GT(uncut.counts.guessed, 0U);
  const std::size_t tokens = handoff.request().text.prompt.size();
  for (const Between& between : pairs) {
    const Fed fed = Feeding(handoff, between).feed({.draft = GetParam(), .chunk = 6}, {}, false, true);
    for (const HandedRun& run : fed.runs) {
      EXPECT_EQ(difference(uncut, run), "") << between.text();
      EXPECT_EQ(run.counts.right, uncut.counts.right) << between.text();
    }
    const std::uint64_t states = GetParam() == DraftHandoff::hidden   ? 1
                                 : GetParam() == DraftHandoff::inputs ? 2
                                                                      : 0;
    EXPECT_EQ(fed.hidden_bytes, between.takers() * tokens * states * handoff.whole().hidden * 4)
        << between.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, RankDrafts,
                         testing::Values(DraftHandoff::recompute, DraftHandoff::hidden, DraftHandoff::inputs),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(RankDrafts, RowsOfPredictionLayersAreRefused) {
  const RankHandoff handoff(model_of("deepseek-v3"));
  const Between between{{.tp = 2}, {}};
  for (const HandedRun& run : Feeding(handoff, between).feed({.draft = DraftHandoff::rows}).runs)
    EXPECT_NE(run.refused, "");
}

// Of one rank a number is other than in its cache; a rank is not there; a stage numbers its layers from nought (vllm-ascend#15900).
TEST(RankHandoff, WhatOneOfThemGotWrongIsSeen) {
  const RankHandoff handoff(model_of("qwen3-moe"));
  HandoffMade altered;
  altered.stage = [](std::vector<double> numbers) {
    numbers.front() += 1;
    return std::make_shared<std::vector<double>>(std::move(numbers));
  };
  const auto refused = [&](const Between& between, const HandoffMade& made, bool dies = false) {
    std::string all;
    for (const HandedRun& run : Feeding(handoff, between).feed({}, made, dies).runs) all += run.refused;
    return all;
  };
  EXPECT_NE(
      refused({{.tp = 2}, {}}, altered).find("the decoder's cache is not what the prefill had in layer 0"),
      std::string::npos);
  EXPECT_NE(refused({{.tp = 2}, {}}, {}, true).find("the prefill ended before its hand-off was whole"),
            std::string::npos);
  HandoffMade numbered;
  const std::size_t first = RankPlace{{.pp = 2}, 1}.layers(handoff.whole().layers.size()).begin;
  numbered.layer_of = [first](std::uint64_t layer) { return layer - first; };
  EXPECT_NE(refused({{.pp = 2}, {}}, numbered).find("came twice, and not the same"), std::string::npos);
}

TEST(RankHandoff, SealsOfRanksAreJoined) {
  const auto key = [](std::uint8_t of) {
    BlockKey k;
    k.bytes[0] = of;
    return k;
  };
  const LayerSeal first{{key(1), key(2)}, {key(3), key(4)}, {key(8), {}}, 0},
      last{{key(2), key(5)}, {key(4), key(6)}, {{}, key(9)}, 1};
  const std::vector<LayerSeal> joined = merged_seals({{first}, {last}});
  EXPECT_EQ(
      joined,
      (std::vector<LayerSeal>{{{key(1), key(2), key(5)}, {key(3), key(4), key(6)}, {key(8), key(9)}, 0}}));
  EXPECT_EQ(first_difference(joined, {last}), "");
  EXPECT_EQ(first_difference(joined, {{{key(2), key(9)}, last.values, {}, 1}}), "layer 0: keys of head 1");
  EXPECT_EQ(first_difference(joined, {{last.keys, last.values, {{}, key(7)}, 1}}),
            "layer 0: heads of a state 1");
  LayerSeal other = last;
  other.keys[0] = key(7);
  EXPECT_THROW(merged_seals({{first}, {other}}), Error);
  other = last;
  other.first_head = 3;  // head 2 is nobody's
  EXPECT_THROW(merged_seals({{first}, {other}}), Error);
}

TEST(RankHandoff, OddCutsAreRefused) {
  const RankHandoff llama(model_of("llama")), jamba(model_of("jamba"));
  for (const RankHandoff* of : {&llama, &jamba}) {
    std::vector<CacheWidth> widths;
    for (const CacheShape::Layer& layer : of->whole().layers) widths.push_back(layer.width);
    EXPECT_THROW(require_widths(of->shape({.tp = 2}, 0), widths), Error);  // nothing was cut
    EXPECT_NO_THROW(require_widths(of->shape({}, 0), widths));
  }
  EXPECT_THROW(llama.shape({.pp = 100}, 0), Error);
}

}  // namespace
}  // namespace assay
