// What a config can say that no forward pass makes sense of: one error, naming the key, before anything runs.
#include <functional>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "tests/refimpl/models/golden_run.h"

namespace assay {
namespace {

struct BadConfig {
  const char* model;
  std::function<void(ParsedJson&)> spoil;
  const char* told;  // in the message
};

std::string error_of(const BadConfig& bad) {
  const test::TempDir dir;
  ParsedJson config = ParsedJson::parse(test::read_file(test::folder(bad.model) / "config.json"));
  bad.spoil(config);
  test::write_file(dir / "config.json", config.dump());
  fs::create_symlink(test::folder(bad.model) / "model.safetensors", dir / "model.safetensors");
  try {
    const Weights weights(dir.path(), 1);
    make_model(weights, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2) << error.line();
    return error.line();
  }
  return "nothing was wrong";
}

TEST(BadConfig, IsRefusedByName) {
  const std::vector<BadConfig> all = {
      {"llama", [](auto& c) { c["rope_scaling"]["rope_type"] = "spiral"; }, "spiral"},
      {"llama", [](auto& c) { c["rope_scaling"]["factor"] = -8; }, "factor"},
      {"llama", [](auto& c) { c["rms_norm_eps"] = "small"; }, "rms_norm_eps"},
      {"llama", [](auto& c) { c["rope_theta"] = 0; }, "rope_theta"},
      {"llama", [](auto& c) { c["num_hidden_layers"] = 4; }, "of layers 3"},
      {"phi3",
       [](auto& c) {
         c["rope_scaling"]["long_factor"] = {1.0, 2.0};
       },
       "long_factor"},
      {"phi3", [](auto& c) { c["partial_rotary_factor"] = 0.45; }, "not pairs"},
      {"phi3", [](auto& c) { c["partial_rotary_factor"] = 0; }, "not pairs"},
      {"phi3", [](auto& c) { c["rope_scaling"].erase("long_factor"); }, "long_factor"},
      {"phi3", [](auto& c) { c["rope_scaling"]["long_factor"] = 7; }, "long_factor"},
      {"phi3", [](auto& c) { c["rope_scaling"]["short_factor"][0] = 0.999e-6; }, "short_factor"},
      {"gemma2", [](auto& c) { c["hidden_activation"] = "prelu"; }, "hidden_activation"},
      {"gemma2", [](auto& c) { c["attn_logit_softcapping"] = -1; }, "attn_logit_softcapping"},
      {"gpt2", [](auto& c) { c["activation_function"] = "prelu"; }, "activation_function"},
      {"gpt-oss", [](auto& c) { c["swiglu_limit"] = 0; }, "swiglu_limit"},
      {"mixtral", [](auto& c) { c["num_experts_per_tok"] = 7; }, "num_experts_per_tok"},
      {"mixtral", [](auto& c) { c["num_experts_per_tok"] = 0; }, "num_experts_per_tok"},
      {"deepseek-v3", [](auto& c) { c["topk_group"] = 5; }, "topk_group"},
      {"deepseek-v3", [](auto& c) { c["topk_group"] = 0; }, "topk_group"},
      {"deepseek-v3", [](auto& c) { c["n_group"] = 5; }, "n_group"},
      {"deepseek-v3", [](auto& c) { c["num_experts_per_tok"] = 7; }, "num_experts_per_tok"},
      {"deepseek-v2", [](auto& c) { c["topk_method"] = "dice"; }, "topk_method"},
      {"deepseek-v3", [](auto& c) { c["routed_scaling_factor"] = "x"; }, "routed_scaling_factor"},
      {"minicpm3", [](auto& c) { c["dim_model_base"] = 0; }, "dim_model_base"},
  };
  for (const BadConfig& bad : all) {
    const std::string error = error_of(bad);
    EXPECT_NE(error.find(bad.told), std::string::npos) << bad.model << ", " << bad.told << ": " << error;
  }
}

// Numbers beyond reason, and beside them the last that are not.
TEST(BadConfig, NumbersHaveBounds) {
  struct Bound {
    const char *model, *key;
    double refused, accepted;
    const char* within = nullptr;  // an object of the config
  };
  const Bound all[] = {
      {"llama", "max_position_embeddings", 0, 1},
      {"llama", "rms_norm_eps", -1e-9, 0},
      {"llama", "rms_norm_eps", 1.001, 1},
      {"llama", "rope_theta", 0.9e-3, 1e-3},
      {"llama", "rope_theta", 1.01e15, 1e15},
      {"llama", "factor", 0.9e-6, 1e-6, "rope_scaling"},
      {"llama", "factor", 1.01e6, 1e6, "rope_scaling"},
      {"llama", "original_max_position_embeddings", 0, 1, "rope_scaling"},
      {"llama", "low_freq_factor", 0, 1e-6, "rope_scaling"},
      {"llama", "high_freq_factor", 1.01e6, 1e6, "rope_scaling"},
      {"qwen2", "beta_fast", 0.9e-6, 1e-6, "rope_scaling"},
      {"qwen2", "beta_slow", 1.01e6, 1e6, "rope_scaling"},
      {"qwen2", "attention_factor", 0, 1e-6, "rope_scaling"},
      {"deepseek-v3", "mscale", -0.01, 0, "rope_scaling"},
      {"deepseek-v3", "mscale_all_dim", -0.01, 0, "rope_scaling"},
      {"phi3", "partial_rotary_factor", 1.01, 0.75},
      {"phi3", "factor", 0.9e-6, 1e-6, "rope_scaling"},
      {"gemma2", "attn_logit_softcapping", 0.9e-3, 1e-3},
      {"gemma2", "final_logit_softcapping", 1.01e6, 1e6},
      {"gemma2", "query_pre_attn_scalar", 0.9e-3, 1e-3},
      {"gemma2", "query_pre_attn_scalar", 1.01e9, 1e9},
      {"gemma3", "rope_local_base_freq", 0.9e-3, 1e-3},
      {"gemma3", "rope_local_base_freq", 1.01e15, 1e15},
      {"gpt-oss", "swiglu_limit", 0.9e-3, 1e-3},
      {"gpt-oss", "swiglu_limit", 1.01e6, 1e6},
      {"gpt2", "layer_norm_epsilon", 1.001, 1},
  };
  for (const Bound& bound : all) {
    const auto error_with = [&](double value) {
      return error_of({bound.model,
                       [&](auto& config) {
                         (bound.within == nullptr ? config : config[bound.within])[bound.key] = value;
                       },
                       bound.key});
    };
    EXPECT_NE(error_with(bound.refused).find(bound.key), std::string::npos) << bound.model;
    EXPECT_EQ(error_with(bound.accepted), "nothing was wrong") << bound.model << " " << bound.key;
  }
}

TEST(BadConfig, TheLeastFactorOfAPair) {
  const BadConfig least = {"phi3", [](auto& c) { c["rope_scaling"]["short_factor"][0] = 1e-6; }, ""};
  EXPECT_EQ(error_of(least), "nothing was wrong");
}

TEST(BadConfig, UnknownVariantNamesTheKnownOnes) {
  const Weights weights(test::folder("deepseek-v3"), 1);
  try {
    make_model(weights, {.variant = "vllm"});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(error.line().find("vllm"), std::string::npos);
    EXPECT_NE(error.line().find("transformers-4"), std::string::npos);
  }
}

TEST(BadConfig, TokenBeyondTheVocabulary) {
  for (const TokenId token : {96, -1}) EXPECT_THROW(test::Runner("llama", Precision::f32)({1, token}), Error);
}

}  // namespace
}  // namespace assay
