// Attention to chosen keys (DeepSeek-V3.2, GLM-5) beyond what all families share: the choice itself, index keys in the
// cache, layers that take another's choice, multi-token prediction.
#include <nlohmann/json.hpp>

#include "refimpl/ops/index_calls.h"
#include "tests/refimpl/models/golden_run.h"
#include "tests/refimpl/models/kin_families.h"
#include "tests/refimpl/models/made_weights.h"

namespace assay {
namespace {

using test::folder;
using test::kOfDoubles;
using test::largest;
using test::largest_difference;
using test::Runner;
using test::tokens_of;

constexpr const char* kIndexed[] = {"deepseek-v32", "glm-moe-dsa", "deepseek-v4"};
constexpr const char* kPredicting[] = {"deepseek-v32", "glm-moe-dsa"};

std::map<std::string, test::Numbers> golden(const std::string& model) {
  return test::read_tensors(folder(model) / "golden/transformers.safetensors");
}

Matrix matrix(ReferenceOps& ops, std::size_t rows, const std::vector<double>& values) {
  return ops.upload(values, rows, values.size() / rows);
}

// Two heads of one element: key s scores w0 relu(q0 k) + w1 relu(q1 k).
TEST(ChooseKeys, TakesTheBestOfThoseAQueryMaySee) {
  ReferenceOps ops({Precision::f64}, 1);
  const Matrix keys = matrix(ops, 4, {1, -3, 2, 5});
  IndexCall call{.q = matrix(ops, 2, {1, -1, 1, -1}),
                 .weights = matrix(ops, 2, {1, 1, 1, -1}),
                 .sequences = {{.first = 0, .queries = 2, .position = 2, .key_rows = {.base = keys}}},
                 .heads = 2,
                 .head_dim = 1,
                 .top_k = 2};
  const KeyChoice choice = ops.choose_keys(call);
  EXPECT_EQ(choice.keys[0], (std::vector<std::int32_t>{1, 2}));  // scores 1, 3, 2
  EXPECT_EQ(choice.keys[1], (std::vector<std::int32_t>{2, 3}));  // 1, -3, 2, 5
  EXPECT_EQ(ops.download(choice.positions), (std::vector<double>{1, 2, 2, 3}));
  call.top_k = 3;
  EXPECT_EQ(ops.choose_keys(call).keys[0], (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(ChooseKeys, OfEqualScoresTheEarlierAndNeverNaNWhileANumberIsLeft) {
  ReferenceOps ops({Precision::f64}, 1);
  const Matrix keys = matrix(ops, 5, {NAN, -1, 2, -1, -2});
  const IndexCall call{.q = matrix(ops, 1, {1}),
                       .weights = matrix(ops, 1, {1}),
                       .sequences = {{.first = 0, .queries = 1, .position = 4, .key_rows = {.base = keys}}},
                       .heads = 1,
                       .head_dim = 1,
                       .top_k = 3};
  EXPECT_EQ(ops.choose_keys(call).keys[0], (std::vector<std::int32_t>{1, 2, 3}));
}

// Every key chosen, by pages of one row, is what attention to all of them gives.
TEST(SparseAttention, OfEveryKeyIsDense) {
  const test::TempDir sparse, dense;
  auto config = nlohmann::json::parse(test::read_file(folder("deepseek-v32") / "config.json"));
  const std::vector<TokenId> prompt = tokens_of(golden("deepseek-v32").at("tokens"));
  for (const auto& [place, top_k] : {std::pair{&sparse, prompt.size()}, {&dense, prompt.size() + 1}}) {
    config["index_topk"] = top_k;
    test::write_file(*place / "config.json", config.dump());
    fs::create_symlink(folder("deepseek-v32") / "model.safetensors", *place / "model.safetensors");
  }
  const std::vector<double> all = Runner(sparse.path(), Precision::f64)(prompt);
  EXPECT_EQ(all, Runner(dense.path(), Precision::f64)(prompt));
  EXPECT_GT(largest_difference(all, Runner("deepseek-v32", Precision::f64)(prompt)), 1e-3 * largest(all));
}

TEST(SparseAttention, TokenByTokenIsAtOnce) {
  for (const char* model : kIndexed) {
    const std::vector<TokenId> prompt = tokens_of(golden(model).at("tokens"));
    Runner run(model, Precision::f32);
    const std::vector<double> at_once = run(prompt);
    const std::size_t vocabulary = at_once.size() / prompt.size();
    Runner stepwise(model, Precision::f32);
    for (std::size_t t = 0; t < prompt.size(); ++t) {
      const std::vector<double> row(at_once.begin() + static_cast<std::ptrdiff_t>(t * vocabulary),
                                    at_once.begin() + static_cast<std::ptrdiff_t>((t + 1) * vocabulary));
      EXPECT_EQ(stepwise.step({prompt[t]}), row) << model << " token " << t;
    }
  }
}

// Tokens guessed and taken back leave nothing behind: neither latents nor index keys.
TEST(SparseAttention, TokensTakenBackNeverWere) {
  for (const char* model : kIndexed) {
    const std::vector<TokenId> prompt = tokens_of(golden(model).at("tokens"));
    const std::vector<TokenId> begin(prompt.begin(), prompt.begin() + 12),
        end(prompt.begin() + 12, prompt.end());
    Runner plain(model, Precision::f32), guessing(model, Precision::f32);
    plain.step(begin);
    guessing.step(begin);
    guessing.step({5, 6, 7, 8});
    guessing.take_back(begin.size());
    EXPECT_EQ(guessing.step(end), plain.step(end)) << model;
  }
}

TEST(SparseAttention, MultiTokenPrediction) {
  for (const char* model : kPredicting) {
    const auto tensors = golden(model);
    const std::vector<double>& truth = tensors.at("mtp_logits.f64").values;
    EXPECT_LE(largest_difference(Runner(model, Precision::f64).draft(tokens_of(tensors.at("tokens"))), truth),
              kOfDoubles * largest(truth))
        << model;
  }
}

// Of data/fixtures/kin: windows of latents, streams that are not mixed, pools of keys.
constexpr const char* kMade[] = {"dots3_note_text", "hy_v4", "glm5_next"};

nlohmann::json made_variants(const std::string& family) {
  return nlohmann::json::parse(test::read_file(test::kin_folder() / (family + ".json")));
}

// The error of a made model that cannot be run, or "computed".
std::string made_refusal(const nlohmann::json& config) {
  const test::TempDir place;
  try {
    test::put_made_model(place.path(), config.dump());
    Runner run(place.path(), Precision::f32);
  } catch (const Error& error) {
    return error.line();
  }
  return "computed";
}

TEST(SparseAttention, WhatMadeModelsReadIsTakenBack) {
  for (const std::string family : kMade) {
    for (const auto& entry : made_variants(family)) {
      SCOPED_TRACE(entry["config"].dump());
      const test::TempDir place;
      test::put_made_model(place.path(), entry["config"].dump());
      const std::vector<TokenId> tokens = entry["tokens"];
      Runner whole(place.path(), Precision::f32), again(place.path(), Precision::f32);
      const std::vector<double> logits = whole(tokens);
      constexpr std::size_t kKept = 4;
      const std::span all(tokens);
      again({all.begin(), all.begin() + kKept});
      again.step({tokens[0], tokens[2], tokens[1]});  // what was guessed, and wrong
      again.take_back(kKept);
      const std::vector<double> rest = again.step({all.begin() + kKept, all.end()});
      EXPECT_TRUE(std::equal(rest.rbegin(), rest.rend(), logits.rbegin()));
    }
  }
}

TEST(SparseAttention, Hy4RotatesAsTheVariantSays) {
  for (const auto& entry : made_variants("hy_v4")) {
    if (entry["config"]["qk_rope_head_dim"] == 2) continue;  // one pair
    const test::TempDir place;
    test::put_made_model(place.path(), entry["config"].dump());
    const std::vector<TokenId> tokens = entry["tokens"];
    Runner plain(place.path(), Precision::f64),
        named(place.path(), Precision::f64, {.variant = "transformers"}),
        other(place.path(), Precision::f64, {.variant = "sglang"});
    const std::vector<double> logits = plain(tokens);
    EXPECT_EQ(logits, named(tokens));
    EXPECT_GT(largest_difference(logits, other(tokens)), 1e-6 * largest(logits));
  }
}

TEST(SparseAttention, OtherSwitchesOfMadeModelsAreRefused) {
  for (const auto& [family, key, value] : std::vector<std::tuple<std::string, std::string, nlohmann::json>>{
           {"dots3_note_text", "apply_mla_qkv_lora_rescale", false},
           {"dots3_note_text", "swa_attention_gate_type", "elementwise"},
           {"hy_v4", "swiglu_limit", 0},
           {"hy_v4", "gating_type", "headwise"},
           {"hy_v4", "hidden_act", "gelu"},
           {"glm5_next", "index_kpool_always_select_tail", false},
           {"glm5_next", "swiglu_limit", -1},
           {"glm5_next", "mla_use_nope", false}}) {
    nlohmann::json config = made_variants(family)[0]["config"];
    EXPECT_EQ(made_refusal(config), "computed");
    (config.contains("text_config") ? config["text_config"] : config)[key] = value;
    EXPECT_NE(made_refusal(config).find(key), std::string::npos) << family << ": " << made_refusal(config);
  }
}

// What the classes do not compute is refused by name.
TEST(SparseAttention, OtherSwitchesAreRefused) {
  for (const auto& [model, key, value] : std::vector<std::tuple<std::string, std::string, nlohmann::json>>{
           {"deepseek-v32", "rope_interleave", false},
           {"deepseek-v32", "scoring_func", "softmax"},
           {"glm-moe-dsa", "indexer_rope_interleave", false},
           {"glm-moe-dsa", "moe_layer_freq", 2},
           {"deepseek-v4", "scoring_func", "sigmoid"},
           {"deepseek-v4", "norm_topk_prob", false},
           {"deepseek-v4", "compress_rate_hca", 64},
           {"deepseek-v4", "compress_rates", {{"heavily_compressed_attention", 64}}}}) {
    const test::TempDir place;
    auto config = nlohmann::json::parse(test::read_file(folder(model) / "config.json"));
    config[key] = value;
    test::write_file(place / "config.json", config.dump());
    fs::create_symlink(folder(model) / "model.safetensors", place / "model.safetensors");
    try {
      Runner run(place.path(), Precision::f64);
      ADD_FAILURE() << model << " " << key;
    } catch (const Error& error) {
      EXPECT_NE(error.line().find(key), std::string::npos) << error.line();
    }
  }
}

}  // namespace
}  // namespace assay
