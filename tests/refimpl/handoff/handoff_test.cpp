// A prompt read by one engine, its text written by another: what one engine says of both, bit for bit, of every family.
#include "refimpl/claims/handoff_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/system/sanitizer.h"
#include "paramcount/memory.h"
#include "refimpl/ops/kernel_set.h"
#include "refimpl/ops/reference.h"
#include "refimpl/speculation/layer_drafter.h"
#include "tests/support/paths.h"
#include "tests/support/progress.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

std::vector<std::string> handed_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::source_dir() / "data/models"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

struct HandedModel {
  HandedModel(const std::string& name, Precision precision)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(reference_kernels().make({precision}, 1)),
        model(make_model(weights, {})),
        with{*model, *ops, cache_shape(*model, weights.tree()), handoff_identity(name)} {}
  ServingRequest request(std::size_t tokens, std::size_t most) const {
    ServingRequest made;
    for (std::size_t i = 0; i < tokens; ++i)
      made.text.prompt.push_back(static_cast<TokenId>((7 * i * i + 3 * i + 5) % model->vocabulary()));
    made.text.max_new_tokens = most;
    return made;
  }
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  HandoffModel with;
};

class HandedOver : public testing::TestWithParam<std::string> {};

// Lengths and chunks on both sides of blocks; windows of the tiny models are shorter than 40 tokens.
TEST_P(HandedOver, IsWhatOneEngineWrites) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    if (kSanitized && precision != Precision::f32) continue;  // minutes
    const HandedModel m(GetParam(), precision);
    for (const std::size_t tokens : {1U, 16U, 41U}) {
      const ServingRequest request = m.request(tokens, 6);
      const HandedDecoder decoder{.block_tokens = tokens == 41 ? 7U : 16U};
      const HandedRun uncut = write_uncut(m.with, request, decoder);
      for (const bool by_layer : {true, false}) {
        const HandoffOptions options{.by_layer = by_layer,
                                     .first = by_layer ? FirstToken::id : FirstToken::hidden,
                                     .chunk = by_layer ? 5U : 512U};
        const HandedRun handed = hand_over_and_write(m.with, request, options, decoder);
        ASSERT_EQ(difference(uncut, handed), "") << GetParam() << ", " << tokens << " tokens";
        EXPECT_EQ(handed.rows.front().empty(), by_layer);
        // Where the cache of a shorter text is of no use, the decoder reads the prompt anew.
        EXPECT_TRUE(handed.checked || !m.model->cache_serves(tokens, tokens + 1));
      }
    }
  }
}

// Of a prompt within all windows as many bytes a token as paramcount says that the cache takes, at any width.
TEST_P(HandedOver, TakesTheBytesOfTheCache) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const HandedModel m(GetParam(), precision);
    const std::uint64_t width = precision == Precision::bf16 ? 2 : 4, tokens = 3;
    const ServingRequest request = m.request(tokens, 1);
    const HandedRun handed = hand_over_and_write(m.with, request, {.first = FirstToken::hidden}, {});
    ASSERT_EQ(handed.refused, "");
    EXPECT_EQ(handed.sent.row_bytes, tokens * token_bytes(m.with.shape, width).rows);
    EXPECT_EQ(handed.sent.hidden_bytes, m.weights.tree().hidden_size * width);
    std::uint64_t beside = 0;  // an indexer's keys, which engines keep in other types
    bool compressed = false;   // entries of several tokens
    for (const AttentionGeometry& g : m.weights.tree().attention) {
      beside += g.layers.size() * g.indexer_head_dim * width;
      compressed |= g.compressed != 0;
    }
    if (compressed) continue;
    const KvCache counted = kv_cache(m.weights.tree(), {.bytes_per_value = static_cast<double>(width)});
    EXPECT_EQ(handed.sent.row_bytes, tokens * (counted.per_token + beside)) << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HandedOver, testing::ValuesIn(handed_models()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// The figures that are told of it: 576 numbers in 61 layers; option 2 adds a hidden state and an embedding, of which the
// decoder could make the latter itself.
TEST(HandoffBytes, OfDeepSeekV3) {
  const ModuleTree tree = describe(ModelConfig::read(test::published_config("DeepSeek-V3")));
  EXPECT_EQ(kv_cache(tree, {.bytes_per_value = 2}).per_token, 70'272U);
  EXPECT_EQ(tree.hidden_size * 2 * 2, 28'672U);
}

// Heads as ranks of a tensor-parallel prefill hold them: dealt out, and replicated where ranks are more than heads.
TEST(Handoff, TakesHeadsFromSeveralSenders) {
  const HandedModel m("llama", Precision::f32);
  const std::uint64_t heads = m.with.shape.layers[0].heads;
  ASSERT_GT(heads, 1U);
  const ServingRequest request = m.request(21, 5);
  const HandedRun uncut = write_uncut(m.with, request, {});
  for (const std::uint64_t senders : {heads, 2 * heads, 4 * heads}) {
    const HandedRun handed = hand_over_and_write(m.with, request, {.chunk = 8, .senders = senders}, {});
    EXPECT_EQ(difference(uncut, handed), "") << senders;
    EXPECT_EQ(handed.sent.row_bytes, 21 * token_bytes(m.with.shape, 4).rows * (senders / heads));
  }
}

class HandedDrafts : public testing::TestWithParam<DraftHandoff> {};

// Guesses are as good as those of one engine: as many tried, as many right.
TEST_P(HandedDrafts, GuessAsOneEngineDoes) {
  for (const std::string name : {"deepseek-v3", "qwen3-next", "glm4-moe-lite"}) {
    const HandedModel m(name, Precision::f32);
    if (m.model->draft_layers() == 0) continue;
    const HandedDecoder decoder{
        .block_tokens = 4,
        .speculation = {.source = std::make_shared<LayerDrafts>(*m.model, *m.ops), .shape = {1, 1}}};
    const ServingRequest request = m.request(19, 24);
    const HandedRun uncut = write_uncut(m.with, request, decoder);
    const HandedRun handed = hand_over_and_write(m.with, request, {.draft = GetParam(), .chunk = 6}, decoder);
    EXPECT_EQ(difference(uncut, handed), "") << name;
    EXPECT_GT(uncut.counts.guessed, 0U) << name;
    if (GetParam() == DraftHandoff::none) continue;
    EXPECT_EQ(handed.counts.guessed, uncut.counts.guessed) << name;
    EXPECT_EQ(handed.counts.accepted, uncut.counts.accepted) << name;
    EXPECT_EQ(handed.counts.right, uncut.counts.right) << name;
    const std::uint64_t hidden = m.weights.tree().hidden_size * 4;
    std::uint64_t states = 0;  // hidden states and their like, a token
    if (GetParam() == DraftHandoff::hidden) states = 1;
    if (GetParam() == DraftHandoff::inputs) states = 2;
    EXPECT_EQ(handed.sent.hidden_bytes, 19 * states * hidden);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, HandedDrafts,
                         testing::Values(DraftHandoff::none, DraftHandoff::recompute, DraftHandoff::rows,
                                         DraftHandoff::hidden, DraftHandoff::inputs),
                         [](const auto& info) { return std::string(name(info.param)); });

// The second layer's attention waits until a part of the first is on its way, and that part goes on until the second layer's
// attention was computed: both are under way at once, or one waits in vain.
struct Meeting {
  test::Progress computed, sent;
};

class MeetingOps : public ReferenceOps {
 public:
  explicit MeetingOps(Meeting& meeting) : ReferenceOps({Precision::f32}, 1), meeting_(meeting) {}
  using ReferenceOps::run;
  Matrix run(const AttentionCall& call) override {
    if (++layer_ == 2) {
      EXPECT_TRUE(meeting_.sent.wait_for(1)) << "nothing goes before all is computed";
    }
    Matrix result = ReferenceOps::run(call);
    meeting_.computed.next();
    return result;
  }

 private:
  Meeting& meeting_;
  std::size_t layer_ = 0;
};

class MeetingSink : public PartQueue {
 public:
  explicit MeetingSink(Meeting& meeting) : meeting_(meeting) {}
  void put(std::uint64_t serial, std::span<const std::byte> part) override {
    constexpr std::uint64_t kFirstRows = 1;  // behind the ticket
    if (serial == kFirstRows) {
      meeting_.sent.next();
      EXPECT_TRUE(meeting_.computed.wait_for(2)) << "nothing is computed while a part goes";
    }
    PartQueue::put(serial, part);
  }

 private:
  Meeting& meeting_;
};

HandoffTimeline timeline_of(const HandedModel& m, Ops& ops, bool by_layer, PartSink& sink) {
  const HandoffModel with{*m.model, ops, m.with.shape, m.with.identity};
  const HandoffTimeline timeline =
      hand_over(with, m.request(120, 1).text, {.by_layer = by_layer, .chunk = 30}, sink).timeline;
  EXPECT_EQ(timeline.layers.size(), 4 * m.with.shape.layers.size());
  for (const LayerTime& layer : timeline.layers) {
    EXPECT_LE(layer.computed.from, layer.computed.to);
    EXPECT_LE(layer.computed.to, layer.sent.from);  // nothing goes before it is there
    EXPECT_GT(layer.bytes, 0U);
  }
  return timeline;
}

// What goes layer by layer goes while later layers are computed; what goes at the end does not.
TEST(Handoff, SendsWhileItComputes) {
  const HandedModel m("llama", Precision::f32);
  Meeting meeting;
  MeetingOps ops(meeting);
  MeetingSink meets(meeting);
  EXPECT_GT(timeline_of(m, ops, true, meets).overlapped(), 0);
  PartQueue sink;
  EXPECT_EQ(timeline_of(m, *m.ops, false, sink).overlapped(), 0);
}

}  // namespace
}  // namespace assay
