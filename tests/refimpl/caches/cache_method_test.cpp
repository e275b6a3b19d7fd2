// Budgets that a text does not fill change nothing, bit for bit; what is refused, and how; bytes counted.
#include "core/system/error.h"
#include "refimpl/caches/kept_tokens.h"
#include "refimpl/engine/engine.h"
#include "tests/refimpl/caches/method_run.h"

namespace assay {
namespace {

using test::MethodRun;

std::vector<TokenId> text(std::size_t tokens, std::size_t vocabulary) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < tokens; ++i) ids.push_back(static_cast<TokenId>((i * 37 + 5) % vocabulary));
  return ids;
}

// Every layer that has rows, of heads or latent, with windows, sinks, states beside it, shared caches.
class Everything : public testing::TestWithParam<const char*> {};

TEST_P(Everything, IsTheFullCacheBitForBit) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    MethodRun run(GetParam(), precision);
    const std::vector<TokenId> tokens = text(30, run.model().vocabulary());
    const std::vector<std::size_t> steps = {12, 9};  // and then one by one
    const std::vector<double> full = run(nullptr, tokens, steps, 21);
    std::size_t suited = 0;
    for (const CacheMethodName& name : cache_method_names()) {
      for (const std::string& asked :
           {std::string(name.everything),
            std::string(name.name) + (name.name == "streaming" ? ":window=30" : ":budget=30")}) {
        if (asked.ends_with("budget=30") && name.everything.find("budget") == name.everything.npos) continue;
        const auto method = cache_method(asked);
        try {
          require_suitable(*method, run.model());
          if (!method->groups().as_ever()) {
            MethodRun grouped(GetParam(), precision, method->groups());
            EXPECT_EQ(grouped(method, tokens, steps, 21), full) << asked;
            continue;
          }
        } catch (const Error&) {
          continue;
        }
        ++suited;
        EXPECT_EQ(run(method, tokens, steps, 21), full) << asked;
      }
    }
    EXPECT_GE(suited, 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Everything,
                         testing::Values("llama", "gpt2", "gpt-oss", "gemma2", "gemma3", "mistral", "olmo2",
                                         "qwen3", "phi3", "mixtral", "deepseek-v3", "minicpm3", "jamba",
                                         "qwen3-next", "lfm2", "bamba"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A snapped prompt of exactly the budget goes through votes and pooling, and keeps itself.
TEST(CacheMethod, APromptOfTheBudgetIsCutToItself) {
  MethodRun run("llama", Precision::f32);
  const std::vector<TokenId> tokens = text(30, run.model().vocabulary());
  const std::vector<double> full = run(nullptr, tokens, {20}, 20);
  EXPECT_EQ(run(cache_method("snapkv:budget=20,window=5"), tokens, {20}, 20), full);
  EXPECT_NE(run(cache_method("snapkv:budget=19,window=5"), tokens, {20}, 20), full);
}

TEST(CacheMethod, Int8DoesNotDependOnChunks) {
  MethodRun run("llama", Precision::f32);
  const std::vector<TokenId> tokens = text(24, run.model().vocabulary());
  const std::vector<double> whole = run(cache_method("int8"), tokens, {24}, 24);
  EXPECT_EQ(run(cache_method("int8"), tokens, {}, 24), whole);
  EXPECT_EQ(run(cache_method("int8"), tokens, {7, 11}, 24), whole);
}

// Rows of heads: 2 · 2 heads · 16 · 3 layers = 192 numbers a token.
TEST(CacheMethod, BytesAreThoseOfCodesScalesAndRows) {
  MethodRun run("llama", Precision::f32);
  const std::vector<TokenId> tokens = text(40, run.model().vocabulary());
  const auto bytes = [&](const char* method) {
    run(cache_method(method), tokens, {32}, 32);
    return run.bytes();
  };
  EXPECT_EQ(bytes("fp8:recent=all"), 40 * 192 * 2);
  EXPECT_EQ(bytes("fp8"), 40 * 192 + 3 * 2 * 4);
  EXPECT_EQ(bytes("fp8:scale=head"), 40 * 192 + 3 * 4 * 4);
  EXPECT_EQ(bytes("int8"), 40 * 192 + 40 * 3 * 4 * 4);
  EXPECT_EQ(bytes("streaming:sinks=2,window=6"), 8 * 192 * 2);
  EXPECT_EQ(bytes("h2o:budget=8"), 8 * 192 * 2 + 8 * 3 * 2 * 4);
  EXPECT_EQ(bytes("snapkv:budget=8"), (8 + 8) * 192 * 2);  // what is made stays
  // 32 keys in 4 groups of 8 a channel, 24 values in 2 groups of 8 a head; 8 keys and 16 values in full.
  EXPECT_EQ(bytes("kivi2:group=8,residual=16"),
            3 * (32 * 32 / 4 + 4 * 32 * 4 + 24 * 32 / 4 + 24 * 2 * 2 * 4 + 8 * 32 * 2 + 16 * 32 * 2));
}

TEST(CacheMethod, StreamingGoesOnBeyondTheContext) {
  MethodRun run("llama", Precision::f32);
  const std::vector<TokenId> tokens = text(200, run.model().vocabulary());
  ASSERT_LT(run.model().context(), tokens.size());
  const std::vector<double> said = run(cache_method("streaming:sinks=4,window=20"), tokens, {16}, 16);
  EXPECT_EQ(said.size(), tokens.size() * run.model().vocabulary());
  EXPECT_THROW(run(cache_method("h2o:budget=20"), tokens, {16}, 16), Error);
}

TEST(CacheMethod, OfEqualScoresTheEarlierAreTaken) {
  EXPECT_EQ(largest_of(std::vector<double>{1, 2, 2, 2, 0}, 2), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(largest_of(std::vector<double>{1, 2}, 9), (std::vector<std::size_t>{0, 1}));
}

std::string refusal(const char* method, const char* model) {
  try {
    const MethodRun run(model, Precision::f32);
    require_suitable(*cache_method(method), run.model());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CacheMethod, WhatMakesNoSenseIsRefusedInALine) {
  EXPECT_NE(refusal("h2o", "mamba").find("all keep states"), std::string::npos);
  EXPECT_NE(refusal("h2o", "deepseek-v3").find("one latent a token"), std::string::npos);
  EXPECT_NE(refusal("kivi2", "deepseek-v3").find("one latent a token"), std::string::npos);
  EXPECT_NE(refusal("h2o", "mistral").find("a window"), std::string::npos);
  EXPECT_NE(refusal("streaming", "gpt2").find("learnt positions"), std::string::npos);
  EXPECT_NE(refusal("int8", "deepseek-v4").find("an index of their own"), std::string::npos);
  EXPECT_NE(refusal("h2o", "llama-dynamic").find("follow the length"), std::string::npos);
  EXPECT_EQ(refusal("fp8", "deepseek-v3"), "");
  EXPECT_EQ(refusal("snapkv", "gemma3"), "");  // its global layers
}

TEST(CacheMethod, NamesAndOptionsAreHeldToWhatThereIs) {
  for (const char* wrong : {"",
                            "h3o",
                            "h2o:",
                            "h2o:budget",
                            "h2o:budget=",
                            "h2o:budget=-1",
                            "h2o:budget=0",
                            "h2o:budget=8,budget=9",
                            "h2o:budget=8,",
                            "h2o:windows=3",
                            "h2o:budget=8,recent=9",
                            "snapkv:budget=8,window=8",
                            "snapkv:kernel=4",
                            "snapkv:pool=median",
                            "kivi2:group=32,residual=48",
                            "kivi2:group=all",
                            "kivi3",
                            "fp8:scale=row",
                            "streaming:window=0",
                            "streaming:sinks=99999999999999999999"})
    EXPECT_THROW(cache_method(wrong), Error) << wrong;
  EXPECT_EQ(cache_method("h2o:budget=8,recent=8")->name(), "h2o:budget=8,recent=8");
}

TEST(CacheMethod, ACacheThatThrewAwayIsNotTakenBack) {
  ReferenceOps ops({Precision::f32}, 1);
  SequenceCache cache(ops, {{.key_width = 2, .value_width = 2, .kv_heads = 1}}, 8);
  cache.keep_by(cache_method("streaming:sinks=1,window=2"), 4);
  cache.put(0, ops.allocate(4, 2), ops.allocate(4, 2));
  cache.advance(4);
  EXPECT_EQ(cache.length(), 4u);
  EXPECT_EQ(cache.rows(0), 3u);
  EXPECT_THROW(cache.truncate(2), Error);
  cache.truncate(0);
  EXPECT_EQ(cache.rows(0), 0u);
}

// A step that is not advance()d never was.
TEST(CacheMethod, AStepThatDoesNotCountChangesNothing) {
  MethodRun run("llama", Precision::f32);
  const std::vector<TokenId> tokens = text(30, run.model().vocabulary());
  for (const char* name : {"fp8", "h2o:budget=8", "snapkv:budget=8", "streaming:sinks=2,window=5"}) {
    const Weights weights(test::folder("llama"), 1);
    ReferenceOps ops({Precision::f32}, 1);
    SequenceCache cache(ops, run.model().cache_widths(), run.model().context());
    cache.keep_by(cache_method(name), 20);
    const std::vector<double> plain = run(cache_method(name), tokens, {20}, 20);
    std::vector<double> said;
    const auto step = [&](std::size_t at, std::size_t count, bool counts) {
      Batch batch;
      batch.add(std::span(tokens).subspan(at, count), cache);
      const Matrix hidden = run.model().hidden(batch, ops, {});
      if (!counts) return;
      const std::vector<double> rows = ops.download(run.model().logits(hidden, ops, {}));
      said.insert(said.end(), rows.begin(), rows.end());
      cache.advance(count);
    };
    step(0, 7, false);
    step(0, 20, true);
    for (std::size_t at = 20; at < tokens.size(); ++at) {
      step(at == 20 ? 0 : at - 1, 1, false);
      step(at, 1, true);
    }
    EXPECT_EQ(said, plain) << name;
  }
}

}  // namespace
}  // namespace assay
