// Language models that are read from code beside their weights, or from engines' loaders: totals that others tell, and names and
// shapes of what those sources say.
#include <gtest/gtest.h>

#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::expect_stored;
using test::tree_of;

constexpr const char* kXing = R"("model_type": "xing4_0", "vocab_size": 131072, "hidden_size": 3584,
    "intermediate_size": 9216, "moe_intermediate_size": 1024, "num_hidden_layers": 40, "num_attention_heads": 32,
    "num_key_value_heads": 32, "q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 1,
    "num_experts_per_tok": 4, "first_k_dense_replace": 2, "topk_method": "noaux_tc", "hc_mult": 4,
    "num_nextn_predict_layers": 1, "tie_word_embeddings": false)";

// The hub counts 31,215,031,088 of XingChen-AGI/Xing4.0-29B-A4B, embedding and head twice: once more with the layer that predicts.
TEST(TextKin, Xing4HasTheTotalOfTheHub) {
  const ModuleTree tree = tree_of("Xing4_0ForCausalLM", kXing);
  const Totals totals = count(tree);
  EXPECT_EQ(totals.all() + totals.mtp_duplicates, 31'215'031'088U);
  expect_stored(tree, "model.layers.0.attn_hc.hc_fn", {24, 14336});
  expect_stored(tree, "model.layers.39.ffn_hc.hc_scale", {3});
  EXPECT_FALSE(TensorLookup(tree).find("model.layers.40.attn_hc.hc_fn").has_value());
  EXPECT_THROW(tree_of("Xing4_0ForCausalLM", R"("hidden_size": 3584)"), Error);
}

// allenai/OLMo-7B under the code that trained it: as many parameters as OLMo-7B-hf has.
TEST(TextKin, OlmoUnderItsOwnCode) {
  const ModuleTree tree =
      tree_of("OLMoForCausalLM", R"("model_type": "hf_olmo", "d_model": 4096, "n_heads": 32,
      "n_layers": 32, "mlp_hidden_size": 22016, "vocab_size": 50280, "embedding_size": 50304, "weight_tying": false,
      "include_bias": false, "layer_norm_with_affine": false, "rope": true, "activation_type": "swiglu",
      "block_type": "sequential")");
  EXPECT_EQ(count(tree).total, 6'888'095'744U);
  expect_stored(tree, "model.transformer.blocks.31.ff_out.weight", {4096, 11008});
  EXPECT_THROW(tree_of("OLMoForCausalLM", R"("block_type": "llama")"), Error);
  EXPECT_THROW(tree_of("OLMoForCausalLM", R"("d_model": 10, "n_heads": 3)"), Error);
}

TEST(TextKin, GrokAsConvertedAndRugpt) {
  const ModuleTree grok = tree_of("Grok1ModelForCausalLM", R"("hidden_size": 24, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 30, "num_experts": 3)");
  expect_stored(grok, "model.layers.1.moe_block.experts.2.linear_v.weight", {30, 24});
  expect_stored(grok, "model.layers.1.moe_block.experts.2.linear_1.weight", {24, 30});
  expect_stored(grok, "model.layers.0.pre_attn_norm.scale", {24});
  expect_stored(grok, "model.norm.scale", {24});
  const ModuleTree rugpt = tree_of("RuGPT3XLForCausalLM", R"("vocab_size": 50264, "hidden_size": 2048,
      "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 8192, "max_position_embeddings": 2048,
      "tie_word_embeddings": true)");
  expect_stored(rugpt, "model.embed_positions.weight", {2048, 2048});
  expect_stored(rugpt, "model.layers.23.mlp.up_proj.bias", {8192});
  EXPECT_EQ(count(rugpt).total, 1'315'737'600U);
}

// What layers are made of is the target's; the rest is DSpark's.
TEST(TextKin, DraftsOverOtherLayers) {
  const std::string sizes =
      R"("vocab_size": 90, "hidden_size": 24, "intermediate_size": 30, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "markov_rank": 6)";
  const ModuleTree gemma = tree_of("Gemma4DSparkModel", sizes + R"(, "head_dim": 8, "global_head_dim": 10,
      "num_global_key_value_heads": 1, "attention_k_eq_v": true, "target_layer_ids": [1, 4, 7])");
  expect_stored(gemma, "fc.weight", {24, 72});
  expect_stored(gemma, "layers.1.self_attn.k_proj.weight", {10, 24});
  expect_stored(gemma, "layers.1.layer_scalar", {1});
  EXPECT_FALSE(TensorLookup(gemma).find("layers.1.self_attn.v_proj.weight").has_value());
  EXPECT_THROW(tree_of("Gemma4DSparkModel", sizes), Error);
  const ModuleTree kimi = tree_of("K3DSparkModel", sizes + R"(, "q_lora_rank": 7, "kv_lora_rank": 5,
      "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 3, "target_hidden_size": 40, "num_target_layers": 5,
      "enable_confidence_head": true)");
  expect_stored(kimi, "context_proj.weight", {24, 200});
  expect_stored(kimi, "layers.0.self_attn.kv_a_proj_with_mqa.weight", {7, 24});
  expect_stored(kimi, "confidence_head.proj.weight", {1, 24});
  expect_stored(tree_of("LingDSparkModel", sizes + R"(, "model_type": "bailing_moe")"),
                "markov_head.markov_w1.weight", {90, 6});
}

TEST(TextKin, LoopedLayersCacheEveryPass) {
  const std::string sizes = R"("hidden_size": 24, "num_hidden_layers": 6, "num_attention_heads": 2,
      "num_key_value_heads": 2, "swa_num_attention_heads": 2, "swa_num_key_value_heads": 2, "n_routed_experts": 4,
      "num_experts_per_tok": 2, "moe_intermediate_size": 8, "n_layers_per_attn_res_block": 2)";
  const ModuleTree tree = tree_of("Inkling2LoopForCausalLM", sizes + R"(, "loop_config": {"core_start": 2,
      "core_end": 4, "num_passes": 3, "gate_rank": 5})");
  expect_stored(tree, "model.llm.layers.2.controllers.attn.down_weight", {5, 48});
  expect_stored(tree, "model.llm.middle_cycle_cross_pass_queries", {4, 24});
  EXPECT_FALSE(TensorLookup(tree).find("model.llm.layers.4.controllers.attn.down_weight").has_value());
  std::size_t cached = 0;
  for (const AttentionGeometry& g : tree.attention) cached += g.layers.size();
  EXPECT_EQ(cached, 6U + 2U * 2U);
  EXPECT_THROW(tree_of("Inkling2LoopForCausalLM", sizes + R"(, "loop_layer_index_end": 7)"), Error);
}

}  // namespace
}  // namespace assay
