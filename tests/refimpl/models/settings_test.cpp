// What models ask of the operations, and say of themselves: forms of mixtures, limits, contexts, caches,
// taps.
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "refimpl/models/precision_note.h"
#include "tests/refimpl/models/golden_run.h"

namespace assay {
namespace {

using test::folder;
using SortedJson = nlohmann::json;

// A model of data/models under a changed config.
struct Changed {
  Changed(const std::string& name, const SortedJson& changes, const std::vector<std::string>& absent = {}) {
    SortedJson config = SortedJson::parse(test::read_file(folder(name) / "config.json"));
    config.merge_patch(changes);
    for (const std::string& key : absent) config.erase(key);
    test::write_file(place / "config.json", config.dump());
    fs::create_symlink(folder(name) / "model.safetensors", place / "model.safetensors");
  }
  std::size_t context() const { return make_model(Weights(place.path(), 1), {})->context(); }
  std::vector<double> logits(const ModelOptions& options, std::size_t length = 40) const {
    std::vector<TokenId> tokens;
    for (std::size_t i = 0; i < length; ++i) tokens.push_back(static_cast<TokenId>(2 + i * 7 % 90));
    return test::Runner(place.path(), Precision::f64, options)(tokens);
  }
  test::TempDir place;
};

class Spy : public ReferenceOps {
 public:
  Spy() : ReferenceOps({Precision::f32}, 1) {}
  using ReferenceOps::run;
  Matrix run(const FusedMoeCall& call) override {
    forms.push_back(call.form);
    gated = call.experts.form;
    return ReferenceOps::run(call);
  }
  std::vector<MoeForm> forms;
  GatedActivation gated;
};

void look(const fs::path& place, const ModelOptions& options, Spy& ops) {
  const Weights weights(place, 1);
  const auto model = make_model(weights, options);
  SequenceCache cache(ops, model->cache_widths(), model->context());
  Batch batch;
  batch.add(std::vector<TokenId>{5, 7}, cache);
  model->hidden(batch, ops, {});
}

TEST(Settings, MixturesAreOfTheFormAskedFor) {
  for (const char* name : {"mixtral", "qwen3-moe", "gpt-oss", "deepseek-v2", "deepseek-v3"}) {
    for (const MoeForm form : {MoeForm::sparse, MoeForm::dense}) {
      Spy ops;
      look(folder(name), {.moe = form}, ops);
      ASSERT_FALSE(ops.forms.empty()) << name;
      for (const MoeForm seen : ops.forms) EXPECT_EQ(seen, form) << name;
    }
  }
}

TEST(Settings, GptOssClampsAtSevenUnlessToldOtherwise) {
  Spy silent, told;
  look(Changed("gpt-oss", SortedJson::object(), {"swiglu_limit"}).place.path(), {}, silent);
  EXPECT_EQ(silent.gated.activation, Activation::gpt_oss);
  EXPECT_EQ(silent.gated.limit, 7);
  look(Changed("gpt-oss", {{"swiglu_limit", 2.5}}).place.path(), {}, told);
  EXPECT_EQ(told.gated.limit, 2.5);
}

// Dynamic scaling and YaRN stretch the original context, never below what the config states.
TEST(Settings, ContextsAreStretched) {
  EXPECT_EQ(Changed("llama-dynamic", SortedJson::object()).context(), 32U * 4);
  EXPECT_EQ(Changed("qwen2", SortedJson::object()).context(), 128U);
  EXPECT_EQ(Changed("qwen2", {{"rope_scaling", {{"factor", 100.0}}}}).context(), 3200U);
  EXPECT_EQ(Changed("llama", {{"rope_scaling", {{"factor", 100.0}}}}).context(), 128U);
  EXPECT_EQ(Changed("llama", {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 9.0}}}}).context(), 128U);
  EXPECT_EQ(Changed("gpt2", SortedJson::object()).context(), 128U);
}

TEST(Settings, CachesServeWhereFrequenciesStay) {
  const auto serves = [](const char* name, std::size_t length, std::size_t other) {
    return make_model(Weights(folder(name), 1), {})->cache_serves(length, other);
  };
  for (const char* name : {"gpt2", "llama", "qwen2", "deepseek-v3"}) EXPECT_TRUE(serves(name, 3, 90)) << name;
  for (const char* name : {"phi3", "minicpm3"}) {
    EXPECT_TRUE(serves(name, 5, 32)) << name;
    EXPECT_FALSE(serves(name, 32, 33)) << name;
    EXPECT_FALSE(serves(name, 33, 32)) << name;
    EXPECT_TRUE(serves(name, 33, 60)) << name;
  }
  EXPECT_TRUE(serves("llama-dynamic", 5, 32));
  EXPECT_FALSE(serves("llama-dynamic", 32, 33));
  EXPECT_FALSE(serves("llama-dynamic", 40, 41));
}

// DeepSeek's own code: without mscale YaRN's is 1, and a context not longer than the original is not
// stretched.
TEST(Settings, OfDeepseeksOwnCode) {
  const ModelOptions own = {.variant = "deepseek"};
  const SortedJson without = {{"rope_scaling", {{"mscale", nullptr}}}};
  const SortedJson zero = {{"rope_scaling", {{"mscale", 0}}}}, two = {{"rope_scaling", {{"mscale", 2}}}};
  const std::vector<double> one = Changed("deepseek-v3", SortedJson::object()).logits(own);
  EXPECT_EQ(Changed("deepseek-v3", without).logits(own), one);
  EXPECT_EQ(Changed("deepseek-v3", zero).logits(own), one);
  EXPECT_NE(Changed("deepseek-v3", two).logits(own), one);
  EXPECT_EQ(Changed("deepseek-v3", {{"max_position_embeddings", 32}}).logits(own, 20),
            Changed("deepseek-v3", {{"rope_scaling", nullptr}}).logits(own, 20));
}

TEST(Settings, TheTapsOfADraft) {
  const Weights weights(folder("deepseek-v3"), 1);
  const auto model = make_model(weights, {});
  ReferenceOps ops({Precision::f64}, 1);
  SequenceCache cache(ops, model->cache_widths(), model->context());
  SequenceCache own(ops, model->cache_widths(), model->context());
  Batch batch, next;
  batch.add(std::vector<TokenId>{5, 7, 9}, cache);
  next.add(std::vector<TokenId>{7, 9}, own);
  test::Recorder recorder(ops);
  const Matrix hidden = model->hidden(batch, ops, {});
  const Matrix draft = model->draft(0, next, hidden.row_range(0, 2), ops, Taps(recorder));
  const Matrix logits = model->draft_logits(0, draft, ops, Taps(recorder));
  EXPECT_EQ(recorder.taken.at("mtp.0.final_norm"), ops.download(draft));
  EXPECT_EQ(recorder.taken.at("mtp.0.logits"), ops.download(logits));
  EXPECT_EQ(recorder.taken.at("mtp.0.projected").size(), 2 * 48U);
  EXPECT_TRUE(recorder.taken.contains("mtp.0.out"));
}

std::string error_of(const fs::path& place) {
  try {
    const Weights weights(place, 1);
  } catch (const Error& error) {
    return error.line();
  }
  return "nothing was wrong";
}

TEST(Settings, WeightsWithoutAConfigAreRefused) {
  const test::TempDir place;
  fs::create_symlink(folder("llama") / "model.safetensors", place / "model.safetensors");
  EXPECT_NE(error_of(place.path()).find("no config.json beside the weights"), std::string::npos);
}

TEST(Settings, WeightsThatChangeAreNoticed) {
  const test::TempDir place;
  fs::copy(folder("gpt2"), place.path(), fs::copy_options::recursive);
  const Weights weights(place.path(), 1);
  EXPECT_NO_THROW(weights.check_unchanged());
  std::ofstream(place / "model.safetensors", std::ios::app) << "more";
  EXPECT_THROW(weights.check_unchanged(), Error);
}

TEST(Settings, WhatAPrecisionCannotHaveIsSaid) {
  const auto note = [](const char* name, Precision precision, const char* kernels = "cpu") {
    return precision_note(Weights(folder(name), 1), precision, kernels);
  };
  EXPECT_NE(note("llama", Precision::fp8_block).find("FP8"), std::string::npos);
  EXPECT_NE(note("llama", Precision::int8).find("INT8"), std::string::npos);
  EXPECT_NE(note("llama", Precision::int8_block).find("blocks of integers"), std::string::npos);
  for (const Precision precision : {Precision::int16, Precision::int8_block})
    EXPECT_NE(note("llama", precision, "reference").find("left to kernels"), std::string::npos);
  EXPECT_EQ(note("llama", Precision::int16), "");
  EXPECT_EQ(note("deepseek-v3-fp8", Precision::fp8_block), "");
  EXPECT_NE(note("deepseek-v3-fp8", Precision::int8), "");
  for (const Precision precision : {Precision::f64, Precision::f32, Precision::bf16})
    EXPECT_EQ(note("llama", precision), "");
}

}  // namespace
}  // namespace assay
