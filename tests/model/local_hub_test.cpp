// Models that llama.cpp and MLX run (core/model/families/local_*.cpp): totals of their cards, which round them, and names and shapes
// as llama.cpp's converter and loader have them (conversion/*.py, src/models/*.cpp). Those that MLX has code for are held to it in
// oracle_test.cpp.
#include <gtest/gtest.h>

#include <cmath>

#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::config_of;
using test::expect_stored;
using test::tree_of;

constexpr const char* kPlm = R"("vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 8192,
    "num_hidden_layers": 32, "num_attention_heads": 16, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128)";
constexpr const char* kGrove = R"("vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144,
    "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
    "num_experts_per_tok": 8, "moe_intermediate_size": 768, "tie_word_embeddings": false)";

TEST(LocalHub, TotalsAreThoseOfTheCards) {
  const struct {
    const char *architecture, *keys;
    double billions, digit;
  } models[] = {
      {"PLMForCausalLM", kPlm, 1.83, 0.01},                                   // PLM-Team/PLM-1.8B-Base
      {"GroveMoeForCausalLM", kGrove, 33, 1},                                 // inclusionAI/GroveMoE-Inst
      {"TalkieForCausalLM", R"("model_type": "talkie")", 13, 1},              // talkie-1930-13b-it
      {"GPTRefactForCausalLM", R"("tie_word_embeddings": false)", 1.6, 0.1},  // smallcloudai/Refact-1_6B-fim
      {"PlamoForCausalLM",                                                    // pfnet/plamo-13b
       R"("vocab_size": 50432, "hidden_size": 5120, "intermediate_size": 16640, "num_hidden_layers": 40,
          "num_attention_heads": 40, "n_shared_head": 8)",
       13.1, 0.1},
      {"KlearMoeForCausalLM",  // Kwai-Klear/Klear-46B-A2.5B-Instruct
       R"("vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 32,
          "num_attention_heads": 32, "num_key_value_heads": 4, "num_experts": 256, "num_experts_per_tok": 8,
          "n_shared_experts": 1, "moe_intermediate_size": 896, "tie_word_embeddings": false)",
       46, 1}};
  for (const auto& model : models) {
    const double billions = static_cast<double>(count(tree_of(model.architecture, model.keys)).total) / 1e9;
    EXPECT_LT(std::fabs(billions - model.billions), model.digit / 2 + 1e-9)
        << model.architecture << " " << billions;
  }
}

TEST(LocalHub, PlmProjectsItsQueriesAtOnce) {
  const ModuleTree tree = tree_of("PLMForCausalLM", kPlm);
  EXPECT_EQ(count(tree).total, 1'825'458'176U);  // the shapes of llama.cpp's loader
  expect_stored(tree, "model.layers.0.self_attn.q_proj.weight", {16 * 192, 2048});
  expect_stored(tree, "model.layers.0.self_attn.kv_b_proj.weight", {16 * 256, 512});
  expect_stored(tree, "model.layers.31.mlp.up_proj.weight", {8192, 2048});
  EXPECT_FALSE(TensorLookup(tree).find("model.layers.0.mlp.gate_proj.weight").has_value());
}

TEST(LocalHub, AdjugateExpertsGoInPairs) {
  const ModuleTree tree = tree_of("GroveMoeForCausalLM", kGrove);
  expect_stored(tree, "model.layers.47.mlp.chunk_experts.63.down_proj.weight", {2048, 128});
  expect_stored(tree, "model.layers.0.mlp.experts.127.gate_proj.weight", {768, 2048});
  expect_stored(tree, "model.layers.0.mlp.expert_bias", {128});
  EXPECT_FALSE(TensorLookup(tree).find("model.layers.0.mlp.chunk_experts.64.down_proj.weight").has_value());
  // Of 8 chosen experts each may have another's: 8 adjugate ones, where a Qwen3-30B-A3B has none.
  const auto plain = count(tree_of("Qwen3MoeForCausalLM", kGrove));
  EXPECT_EQ(count(tree).active - plain.active, 48U * (8 * 3 * 2048 * 128 + 128));
}

TEST(LocalHub, CodeshellHasGpt2sNames) {
  const ModuleTree tree = tree_of("CodeShellForCausalLM", R"("model_type": "codeshell")");
  expect_stored(tree, "transformer.h.41.attn.c_attn.weight", {4096 + 2 * 8 * 128, 4096});
  expect_stored(tree, "transformer.h.0.attn.c_attn.bias", {4096 + 2 * 8 * 128});
  expect_stored(tree, "transformer.h.0.mlp.c_fc.weight", {16384, 4096});
  expect_stored(tree, "transformer.ln_f.bias", {4096});
}

TEST(LocalHub, RefactsKeysAndValuesAreOneHead) {
  const ModuleTree tree = tree_of("GPTRefactForCausalLM", R"("tie_word_embeddings": false)");
  expect_stored(tree, "transformer.h.31.attn.q.weight", {2048, 2048});
  expect_stored(tree, "transformer.h.0.attn.kv.weight", {2 * 64, 2048});
  expect_stored(tree, "transformer.h.0.mlp.gate_up_proj.weight", {2 * 5632, 2048});
  expect_stored(tree, "lm_head.weight", {49216, 2048});
}

TEST(LocalHub, MaincoderAndMapleNormTheirHeads) {
  const ModuleTree coder = tree_of("MaincoderForCausalLM", R"("vocab_size": 90, "hidden_size": 48,
      "intermediate_size": 60, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 10)");
  expect_stored(coder, "model.layers.1.self_attn.q_norm.weight", {10});
  expect_stored(coder, "model.layers.1.self_attn.o_proj.weight", {48, 40});
  const ModuleTree maple =
      tree_of("MapleForCausalLM", R"("vocab_size": 90, "hidden_size": 48, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 10, "num_experts": 3, "num_experts_per_tok": 2,
      "moe_intermediate_size": 20, "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"])");
  expect_stored(maple, "model.layers.0.mlp.experts.2.down_proj.weight", {48, 20});
  expect_stored(maple, "model.layers.0.self_attn.k_norm.weight", {10});
  ASSERT_EQ(maple.attention.size(), 2U);
}

// Mixtures of Phi-2 were counted as the dense model that their class is called after.
TEST(LocalHub, ExpertsThatAFamilyHasNotAreRefused) {
  const auto refused = [](const char* keys) {
    try {
      tree_of("PhiForCausalLM", keys);
    } catch (const Error& error) {
      return std::string(error.line());
    }
    return std::string();
  };
  EXPECT_NE(refused(R"("num_local_experts": 4)").find("num_local_experts is 4"), std::string::npos);
  EXPECT_EQ(refused(R"("num_local_experts": 1)"), "");
  EXPECT_EQ(refused(R"("num_local_experts": 4, "use_moe": false)"), "");
  EXPECT_EQ(refused(R"("num_local_experts": 4, "num_experts_per_tok": 2, "model_type": "phi-msft")"), "");
}

// As transformers saves any model since 5.24 whose layers differ ("1": {"intermediate_size": 32}).
TEST(LayersOfTheirOwn, AreRefusedWhereAFamilyDoesNotReadThem) {
  const std::string sizes =
      R"("vocab_size": 90, "hidden_size": 48, "intermediate_size": 60, "num_hidden_layers": 4,
      "num_attention_heads": 4)";
  EXPECT_NO_THROW(tree_of("LlamaForCausalLM", sizes + R"(, "per_layer_config": {})"));
  EXPECT_THROW(
      tree_of("LlamaForCausalLM", sizes + R"(, "per_layer_config": {"1": {"intermediate_size": 32}})"),
      Error);
}

}  // namespace
}  // namespace assay
