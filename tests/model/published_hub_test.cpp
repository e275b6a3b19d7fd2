// Totals that other people published for models whose checkpoints bring code of their own (core/model/families/all_hub.h).
// Cards round them, so that a missing norm or bias would not show: names and shapes are held beside, as their loaders in vLLM,
// SGLang and the published code have them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::expect_stored;
using test::tree_of;

std::size_t tensors_in(const ModuleTree& tree) {
  std::size_t tensors = 0;
  for_each_tensor(tree, [&](const std::string&, const TensorSpec& spec, const TensorIndices&) {
    tensors += spec.storage == Storage::own ? 1 : 0;
  });
  return tensors;
}

struct Exact {
  const char* architecture;
  const char* sizes;
  std::uint64_t total;
  std::size_t tensors;  // 0: nobody told
};

// What the hub counts in the files, or what another model of the same tensors has there.
TEST(PublishedHub, TotalsAreExact) {
  const Exact models[] = {
      // XHToken/Spark-X2.5-4B: 4,112,079,360 in 290 tensors (the hub's API)
      {"Spark2_5ForCausalLM", R"("vocab_size": 131072, "hidden_size": 2560, "intermediate_size": 10240,
       "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256,
       "headwise_attn_output_gate": true, "tie_word_embeddings": true)",
       4'112'079'360, 290},
      // GSAI-ML/LLaDA-8B-Instruct
      {"LLaDAModelLM",
       R"("vocab_size": 126464, "embedding_size": 126464, "d_model": 4096, "mlp_hidden_size": 12288,
       "n_layers": 32, "n_heads": 32, "n_kv_heads": 32, "weight_tying": false, "include_bias": false)",
       8'015'581'184, 291},
      // Dream-org/Dream-v0-Instruct-7B: made of Qwen2.5-7B
      {"DreamModel",
       R"("vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
       "num_attention_heads": 28, "num_key_value_heads": 4, "tie_word_embeddings": false)",
       7'615'616'512, 339},
      // JetLM/SDAR-8B-Chat and SDAR-30B-A3B-Chat: made of Qwen3-8B and Qwen3-30B-A3B
      {"SDARForCausalLM", R"("vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 12288,
       "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
       "tie_word_embeddings": false)",
       8'190'735'360, 399},
      {"SDARMoeForCausalLM", R"("vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144,
       "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
       "num_experts_per_tok": 8, "moe_intermediate_size": 768, "tie_word_embeddings": false)",
       30'532'122'624, 0},
      // microsoft/Phi-3-small-8k-instruct is the class's default
      {"Phi3SmallForCausalLM", R"("vocab_size": 100352)", 7'392'272'384, 0},
      // tomg-group-umd/huginn-0125: published is "3.91B"; the digits are the sum over its class, with the head that its file
      // has beside the table it is tied to
      {"RavenForCausalLM", R"("tie_embeddings": false)", 3'911'006'880, 0},
      // RWKV-7 World 1.5B (arXiv 2503.14456)
      {"RWKV7ForCausalLM",
       R"("vocab_size": 65536, "hidden_size": 2048, "num_hidden_layers": 24, "head_dim": 64,
       "decay_low_rank_dim": 96, "a_low_rank_dim": 96, "v_low_rank_dim": 64, "gate_low_rank_dim": 256,
       "intermediate_size": 8192, "value_dim": null)",
       1'527'404'544, 0},
  };
  for (const Exact& model : models) {
    const ModuleTree tree = tree_of(model.architecture, model.sizes);
    EXPECT_EQ(count(tree).total, model.total) << model.architecture;
    if (model.tensors != 0) {
      EXPECT_EQ(tensors_in(tree), model.tensors) << model.architecture;
    }
  }
}

struct Rounded {
  const char* architecture;
  const char* sizes;
  double total, within;  // in billions, as the card has it, and half of its last digit
  double active = 0;     // 0: dense, or nobody told
  double active_within = 0;
};

TEST(PublishedHub, TotalsAreThoseOfTheCards) {
  const Rounded models[] = {
      // inclusionAI/LLaDA-MoE-7B-A1B, LLaDA2.0-mini (16B, 1.4B without tables)
      {"LLaDAMoEModelLM", R"("vocab_size": 157184, "hidden_size": 2048, "num_hidden_layers": 16,
       "num_attention_heads": 16, "num_key_value_heads": 16, "num_experts": 64, "num_experts_per_tok": 8,
       "expert_intermediate_size": 1024, "dense_intermediate_size": 8192, "shared_expert_intermediate_size": null,
       "qk_layernorm": true, "tie_word_embeddings": false)",
       7.36, 0.005},
      {"LLaDA2MoeModelLM", R"("vocab_size": 157184, "hidden_size": 2048, "intermediate_size": 5120,
       "num_hidden_layers": 20, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
       "num_experts": 256, "num_experts_per_tok": 8, "num_shared_experts": 1, "moe_intermediate_size": 512,
       "first_k_dense_replace": 1, "moe_router_enable_expert_bias": true, "tie_word_embeddings": false)",
       16.26, 0.005},
      // inclusionAI/Ring-mini-linear-2.0 and Ring-flash-linear-2.0 (arXiv 2510.19338: the first computes with 957M beside tables)
      {"BailingMoeLinearV2ForCausalLM",
       R"("vocab_size": 157184, "hidden_size": 2048, "intermediate_size": 5120,
       "num_hidden_layers": 20, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
       "layer_group_size": 5, "num_experts": 256, "num_experts_per_tok": 8, "num_shared_experts": 1,
       "moe_intermediate_size": 512, "moe_shared_expert_intermediate_size": 512, "first_k_dense_replace": 1,
       "moe_router_enable_expert_bias": true, "num_nextn_predict_layers": 0, "tie_word_embeddings": false)",
       16.4, 0.05, 0.957 + 0.6438, 0.0005},
      {"BailingMoeLinearV2ForCausalLM",
       R"("vocab_size": 157184, "hidden_size": 4096, "intermediate_size": 9216,
       "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
       "layer_group_size": 8, "num_experts": 256, "num_experts_per_tok": 8, "num_shared_experts": 1,
       "moe_intermediate_size": 1024, "first_k_dense_replace": 1, "tie_word_embeddings": false)",
       104, 0.5},
      // RWKV/v6-Finch-1B6-HF, -3B-HF, -7B-HF (arXiv 2404.05892)
      {"Rwkv6ForCausalLM", R"("hidden_size": 2048, "num_hidden_layers": 24)", 1.60, 0.005},
      {"Rwkv6ForCausalLM", R"("hidden_size": 2560, "num_hidden_layers": 32)", 3.10, 0.005},
      {"Rwkv6ForCausalLM", R"("hidden_size": 4096, "num_hidden_layers": 32)", 7.63, 0.015},
      // internlm/internlm-7b, BAAI/Aquila2-7B, Skywork/Skywork-13B, Motif-Technologies/Motif-2.6B
      {"InternLMForCausalLM", R"("vocab_size": 103168, "bias": true)", 7.32, 0.005},
      {"AquilaForCausalLM", R"("vocab_size": 100008)", 7.3, 0.05},
      {"SkyworkForCausalLM", R"("vocab_size": 65519, "hidden_size": 4608, "intermediate_size": 12288,
       "num_hidden_layers": 52, "num_attention_heads": 36)",
       13.85, 0.01},
      {"MotifForCausalLM", R"("vocab_size": 219520, "hidden_size": 2048, "intermediate_size": 8192,
       "num_hidden_layers": 32, "num_attention_heads": 16, "num_key_value_heads": 16, "tie_word_embeddings": true)",
       2.6, 0.05},
      // inceptionai/jais-13b
      {"JAISLMHeadModel",
       R"("vocab_size": 84992, "n_embd": 5120, "n_inner": 13653, "n_layer": 40, "n_head": 40,
       "activation_function": "swiglu", "position_embedding_type": "alibi")",
       13.0, 0.05},
      // apple/OpenELM-1_1B (arXiv 2404.14619, table 1: 1.1B)
      {"OpenELMForCausalLM",
       R"("vocab_size": 32000, "model_dim": 2048, "head_dim": 64, "num_transformer_layers": 28,
       "ffn_dim_divisor": 256, "ffn_with_glu": true, "normalize_qk_projections": true, "share_input_output_layers": true,
       "ffn_multipliers": [0.5, 0.63, 0.76, 0.89, 1.02, 1.15, 1.28, 1.41, 1.54, 1.67, 1.8, 1.93, 2.06, 2.19, 2.31, 2.44,
       2.57, 2.7, 2.83, 2.96, 3.09, 3.22, 3.35, 3.48, 3.61, 3.74, 3.87, 4.0],
       "num_kv_heads": [4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8],
       "num_query_heads": [16, 16, 16, 20, 20, 20, 20, 20, 20, 20, 24, 24, 24, 24, 24, 24, 24, 24, 28, 28, 28, 28, 28, 28,
       32, 32, 32, 32])",
       1.08, 0.005},
      // stepfun-ai/step3: 321B with 5B that see, 38B activated
      {"Step3TextForCausalLM", R"("vocab_size": 128815, "moe_layers_enum":
       "4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59")",
       316, 1, 38, 1},
      // xai-org/grok-2: 270B, 115B activated; lmzheng/grok-1: 314B, and a head that it stores again
      {"Grok1ForCausalLM", R"("vocab_size": 131072, "hidden_size": 8192, "intermediate_size": 32768,
       "moe_intermediate_size": 16384, "num_hidden_layers": 64, "num_attention_heads": 64, "num_key_value_heads": 8,
       "head_dim": 128, "num_local_experts": 8, "num_experts_per_tok": 2, "residual_moe": true)",
       270, 0.6, 115, 0.6},
      {"Grok1ForCausalLM", R"("vocab_size": 131072, "hidden_size": 6144, "intermediate_size": 32768,
       "num_hidden_layers": 64, "num_attention_heads": 48, "num_key_value_heads": 8, "num_local_experts": 8,
       "num_experts_per_tok": 2)",
       316.5, 0.1},
      // xverse/XVERSE-MoE-A4.2B: 25.8B and 4.2B
      {"XverseMoeForCausalLM", R"("vocab_size": 100534, "hidden_size": 2560, "intermediate_size": 1728,
       "num_hidden_layers": 28, "num_attention_heads": 32, "num_experts": 64, "moe_top_k": 6, "num_shared_experts": 2)",
       25.8, 0.05, 4.2, 0.05},
      // Snowflake/snowflake-arctic: 480B, 17B
      {"ArcticForCausalLM", R"("vocab_size": 32000, "hidden_size": 7168, "intermediate_size": 4864,
       "num_hidden_layers": 35, "num_attention_heads": 56, "num_key_value_heads": 8, "num_local_experts": 128,
       "num_experts_per_tok": 2, "moe_layer_frequency": 1, "parallel_attn_mlp_res": true)",
       480, 5, 17, 0.5},
      // PowerInfer/SmallThinker-21BA3B
      {"SmallThinkerForCausalLM", R"("vocab_size": 151936, "hidden_size": 2560, "num_hidden_layers": 52,
       "num_attention_heads": 28, "num_key_value_heads": 4, "head_dim": 128, "moe_num_primary_experts": 64,
       "moe_num_active_primary_experts": 6, "moe_ffn_hidden_size": 768, "tie_word_embeddings": false)",
       21.5, 0.05},
      // meituan-longcat/LongCat-Flash-Lite: 68.5B
      {"LongcatFlashNgramForCausalLM", R"("vocab_size": 131072, "hidden_size": 3072, "ffn_hidden_size": 6144,
       "expert_ffn_hidden_size": 1024, "num_layers": 14, "num_attention_heads": 32, "n_routed_experts": 256,
       "zero_expert_num": 128, "moe_topk": 12, "ngram_vocab_size_ratio": 78, "emb_neighbor_num": 4, "emb_split_num": 4)",
       68.5, 0.1},
      // ByteDance/Ouro-1.4B, pfnet/plamo-2-8b, microsoft/Phi-4-mini-flash-reasoning
      {"OuroForCausalLM", R"("vocab_size": 49152, "hidden_size": 2048, "intermediate_size": 5632,
       "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16)",
       1.43, 0.01},
      {"Plamo2ForCausalLM", R"("vocab_size": 100032, "hidden_size": 4096, "intermediate_size": 16384,
       "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 4, "hidden_size_per_head": 128,
       "mamba_num_heads": 64, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_step": 2)",
       9.11, 0.01},
      {"Phi4FlashForCausalLM", R"("vocab_size": 200064, "hidden_size": 2560, "intermediate_size": 10240,
       "num_hidden_layers": 32, "num_attention_heads": 40, "num_key_value_heads": 20, "mb_per_layer": 2,
       "sliding_window": 512, "tie_word_embeddings": true)",
       3.85, 0.01},
  };
  for (const Rounded& model : models) {
    const Totals totals = count(tree_of(model.architecture, model.sizes));
    EXPECT_NEAR(static_cast<double>(totals.total) / 1e9, model.total, model.within) << model.architecture;
    if (model.active > 0) {
      EXPECT_NEAR(static_cast<double>(totals.active) / 1e9, model.active, model.active_within)
          << model.architecture;
    }
  }
}

struct Stored {
  const char* architecture;
  const char* sizes;
  std::vector<std::pair<const char*, std::vector<std::uint64_t>>> tensors;
};

constexpr const char* kSmall =
    R"("vocab_size": 80, "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2)";

TEST(PublishedHub, NamesAndShapesAreThoseOfTheLoaders) {
  const std::string small = kSmall;
  const std::string of_grok = small + R"(, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 10, "residual_moe": true)";
  const std::string of_domyn =
      small + R"(, "per_layer_config": [{"head_dim": 8}, {"head_dim": 8}, {"head_dim": 16}],
      "window_sizes": [[4, 0], [-1, 0], [4, 0]])";
  const std::string of_plamo =
      small + R"(, "hidden_size_per_head": 8, "mamba_num_heads": 6, "mamba_d_state": 5,
      "mamba_d_conv": 4, "mamba_step": 2)";
  const std::string of_jet =
      small + R"(, "layer_types": ["jet", "attn", "swa"], "efficient_attention_config": {
      "swa": {"window_size": 7}, "jet": {"expand_v": 2.0, "num_heads": 3, "head_dim": 4, "conv_size": 4,
      "dconv_generator_reduction": 8}})";
  const std::string of_sala = small + R"(, "mixer_types": ["minicpm4", "lightning-attn", "lightning-attn"],
      "lightning_nh": 3, "lightning_nkv": 3, "lightning_head_dim": 10, "attn_use_output_gate": true,
      "use_output_gate": true, "use_output_norm": true, "qk_norm": true)";
  const std::string of_giga = small + R"(, "q_lora_rank": 10, "kv_lora_rank": 12, "qk_nope_head_dim": 6,
      "qk_rope_head_dim": 2, "v_head_dim": 5, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
      "moe_intermediate_size": 9, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 3,
      "linear_value_head_dim": 5, "full_attention_layers": [1])";
  const std::string of_flash =
      R"("vocab_size": 80, "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 8,
      "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": true)";
  const std::string of_dory =
      R"("vocab_size": 80, "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "layer_types": ["full_attention", "mlp"])";
  const std::string of_longcat =
      R"("vocab_size": 80, "hidden_size": 24, "num_layers": 1, "num_attention_heads": 4,
      "ngram_vocab_size_ratio": 3, "emb_neighbor_num": 3, "emb_split_num": 2)";
  const Stored models[] = {
      {"LLaDAModelLM",
       R"("d_model": 24, "mlp_hidden_size": 20, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 80)",
       {{"model.transformer.blocks.1.attn_out.weight", {24, 24}},
        {"model.transformer.blocks.1.k_proj.weight", {12, 24}},
        {"model.transformer.blocks.1.ff_proj.weight", {20, 24}},
        {"model.transformer.blocks.1.ff_out.weight", {24, 20}},
        {"model.transformer.wte.weight", {80, 24}},
        {"model.transformer.ff_out.weight", {80, 24}}}},
      {"Phi3SmallForCausalLM",
       R"("hidden_size": 24, "ff_intermediate_size": 20, "num_attention_heads": 4, "num_key_value_heads": 2)",
       {{"model.layers.1.self_attn.query_key_value.bias", {48}},
        {"model.layers.1.self_attn.dense.bias", {24}},
        {"model.layers.1.mlp.up_proj.weight", {40, 24}},
        {"model.layers.1.mlp.down_proj.bias", {24}},
        {"model.final_layernorm.bias", {24}}}},
      {"JAISLMHeadModel",
       R"("n_embd": 24, "n_inner": 20, "n_head": 4, "n_layer": 2, "activation_function": "swiglu")",
       {{"transformer.h.1.attn.c_attn.weight", {24, 72}},
        {"transformer.h.1.mlp.c_fc2.weight", {24, 20}},
        {"transformer.h.1.mlp.c_proj.weight", {20, 24}},
        {"transformer.wpe.weight", {1024, 24}}}},
      {"KORMoForCausalLM", kSmall, {{"model.layers.2.pre_mlp_layernorm.weight", {24}}}},
      {"MotifForCausalLM",
       kSmall,
       {{"model.layers.2.self_attn.lambda_q1", {6}},
        {"model.layers.2.self_attn.subln.weight", {12}},
        {"model.layers.2.mlp.act_fn.weight", {3}},
        {"model.layers.2.mlp.act_fn.bias", {1}}}},
      {"DomynEdgeForCausalLM",
       of_domyn.c_str(),
       {{"model.layers.1.attention.q_proj.weight", {32, 24}},
        {"model.layers.2.attention.q_proj.weight", {64, 24}},
        {"model.layers.2.attention.k_norm.weight", {16}},
        {"model.layers.2.feedforward.down_proj.weight", {24, 20}},
        {"model.layers.2.post_feedforward_norm.weight", {24}}}},
      {"OuroForCausalLM",
       kSmall,
       {{"model.layers.2.input_layernorm_2.weight", {24}},
        {"model.layers.2.post_attention_layernorm_2.weight", {24}},
        {"model.early_exit_gate.weight", {1, 24}},
        {"model.early_exit_gate.bias", {1}}}},
      {"DoryForCausalLM",
       of_dory.c_str(),
       {{"backbone.layers.0.mixer.g_proj.weight", {32, 24}},
        {"backbone.layers.0.mixer.sqk", {32}},
        {"backbone.layers.0.attn_alpha", {24}},
        {"backbone.layers.1.mixer.suv_up", {20}},
        {"backbone.layers.1.mlp_alpha", {24}},
        {"lm_head.logit_scale", {80}}}},
      {"LongcatFlashNgramForCausalLM",
       of_longcat.c_str(),
       {{"model.ngram_embeddings.embedders.0.weight", {241, 6}},
        {"model.ngram_embeddings.embedders.3.weight", {247, 6}},
        {"model.ngram_embeddings.post_projs.3.weight", {24, 6}}}},
      {"Step3TextForCausalLM",
       R"("hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8, "share_q_dim": 10,
       "moe_num_experts": 5, "moe_intermediate_size": 7, "share_expert_dim": 6, "moe_layers_enum": [1])",
       {{"model.layers.1.self_attn.q_proj.weight", {10, 24}},
        {"model.layers.1.self_attn.inter_norm.weight", {10}},
        {"model.layers.1.self_attn.wq.weight", {32, 10}},
        {"model.layers.1.self_attn.v_proj.weight", {8, 24}},
        {"model.layers.1.moe.gate.weight", {5, 24}},
        {"model.layers.1.moe.up_proj.weight", {5, 7, 24}},
        {"model.layers.1.moe.down_proj.weight", {5, 24, 7}},
        {"model.layers.1.share_expert.gate_proj.weight", {6, 24}}}},
      {"Grok1ForCausalLM",
       of_grok.c_str(),
       {{"model.layers.2.block_sparse_moe.experts.3.w2.weight", {24, 10}},
        {"model.layers.2.mlp.up_proj.weight", {20, 24}},
        {"model.layers.2.pre_moe_norm.weight", {24}}}},
      {"ArcticForCausalLM",
       R"("hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4,
       "use_residual": true)",
       {{"model.layers.0.block_sparse_moe.mlp.w1.weight", {20, 24}},
        {"model.layers.1.block_sparse_moe.experts.7.w3.weight", {20, 24}},
        {"model.layers.1.residual_mlp.w2.weight", {24, 24}},
        {"model.layers.1.residual_layernorm.weight", {24}}}},
      {"SmallThinkerForCausalLM",
       R"("num_hidden_layers": 2)",
       {{"model.layers.1.block_sparse_moe.primary_router.weight", {32, 1536}},
        {"model.layers.1.block_sparse_moe.experts.31.down.weight", {1536, 768}}}},
      {"Plamo2ForCausalLM",
       of_plamo.c_str(),
       {{"model.layers.layers.1.mixer.qkv_proj.weight", {64, 24}},
        {"model.layers.layers.1.mixer.q_weight", {4, 8}},
        {"model.layers.layers.2.mixer.in_proj.weight", {96, 24}},
        {"model.layers.layers.2.mixer.bcdt_proj.weight", {74, 48}},
        {"model.layers.layers.2.mixer.dt_proj.weight", {6, 64}},
        {"model.layers.layers.2.mixer.B_norm_weight", {5}},
        {"model.layers.layers.2.mixer.conv1d.weight", {48, 1, 4}}}},
      {"JetNemotronForCausalLM",
       of_jet.c_str(),
       {{"model.layers.0.self_attn.v_proj.weight", {24, 24}},
        {"model.layers.0.self_attn.a_proj.weight", {3, 24}},
        {"model.layers.0.self_attn.dynamic_conv1d.kernel_generator.w1.weight", {3, 24}},
        {"model.layers.0.self_attn.dynamic_conv1d.kernel_generator.w2.bias", {96}},
        {"model.layers.0.self_attn.o_norm.weight", {8}},
        {"model.layers.1.self_attn.k_proj.bias", {12}}}},
      {"MiniCPMSALAForCausalLM",
       of_sala.c_str(),
       {{"model.layers.0.self_attn.o_gate.weight", {24, 24}},
        {"model.layers.1.self_attn.z_proj.weight", {30, 24}},
        {"model.layers.1.self_attn.o_norm.weight", {30}},
        {"model.layers.2.self_attn.q_norm.weight", {10}}}},
      {"GigaChat35ForCausalLM",
       of_giga.c_str(),
       {{"model.layers.1.self_attn.gate_proj.weight", {20, 24}},
        {"model.layers.1.self_attn.q_a_layernorm.gate_up_projection.weight", {16, 10}},
        {"model.layers.1.self_attn.kv_a_layernorm.gate_down_projection.weight", {12, 16}},
        {"model.layers.0.self_attn.in_proj_qkvz.weight", {52, 24}},
        {"model.layers.2.post_self_attn_layernorm.gate_up_projection.weight", {16, 24}},
        {"model.layers.2.mlp.gate.e_score_correction_bias", {4}},
        {"model.norm.gate_down_projection.weight", {24, 16}}}},
      {"Phi4FlashForCausalLM",
       of_flash.c_str(),
       {{"model.layers.4.attn.x_proj.weight", {34, 48}},
        {"model.layers.6.attn.in_proj.weight", {48, 24}},
        {"model.layers.5.attn.Wqkv.weight", {48, 24}},
        {"model.layers.7.attn.Wqkv.bias", {24}},
        {"model.layers.7.attn.inner_cross_attn.subln.weight", {12}},
        {"model.final_layernorm.bias", {24}}}},
      {"RWKV7ForCausalLM",
       R"("hidden_size": 128, "num_hidden_layers": 2, "decay_low_rank_dim": 5, "v_low_rank_dim": 6)",
       {{"model.embeddings.weight", {32000, 128}},
        {"model.layers.0.pre_norm.bias", {128}},
        {"model.layers.1.attn.x_r", {1, 1, 128}},
        {"model.layers.1.attn.r_k", {2, 64}},
        {"model.layers.1.attn.w_lora.lora.0.weight", {5, 128}},
        {"model.layers.1.attn.v_lora.lora.2.bias", {128}},
        {"model.layers.1.attn.g_norm.bias", {128}},
        {"model.layers.1.ffn.key.weight", {512, 128}},
        {"model.layers.1.ffn.x_k", {128}}}},
      {"BailingMoeLinearV2ForCausalLM",
       R"("num_hidden_layers": 5)",
       {{"model.word_embeddings.weight", {157184, 2048}},
        {"model.layers.0.attention.query_key_value.weight", {6144, 2048}},
        {"model.layers.0.attention.g_proj.weight", {2048, 2048}},
        {"model.layers.3.attention.g_norm.weight", {2048}},
        {"model.layers.4.attention.query_key_value.weight", {3072, 2048}},
        {"model.layers.4.attention.query_layernorm.weight", {128}},
        {"model.layers.4.attention.dense.weight", {2048, 2048}},
        {"model.layers.4.mlp.gate.expert_bias", {256}},
        {"model.layers.4.mlp.shared_experts.up_proj.weight", {512, 2048}}}},
      {"Rwkv6ForCausalLM",
       R"("hidden_size": 4096, "num_hidden_layers": 2)",
       {{"rwkv.embeddings.weight", {65536, 4096}},
        {"rwkv.blocks.0.pre_ln.bias", {4096}},
        {"rwkv.blocks.1.attention.time_maa_w1", {4096, 320}},
        {"rwkv.blocks.1.attention.time_maa_w2", {5, 64, 4096}},
        {"rwkv.blocks.1.attention.time_decay_w2", {128, 4096}},
        {"rwkv.blocks.1.attention.time_faaaa", {64, 64}},
        {"rwkv.blocks.1.attention.ln_x.bias", {4096}},
        {"rwkv.blocks.1.feed_forward.key.weight", {14336, 4096}},
        {"head.weight", {65536, 4096}}}},
      {"RavenForCausalLM",
       R"("n_embd": 5280)",
       {{"transformer.wte.weight", {65536, 5280}},
        {"transformer.prelude.1.attn.Wqkv.weight", {15840, 5280}},
        {"transformer.core_block.3.attn.qk_bias", {2, 1, 55, 96}},
        {"transformer.coda.1.mlp.fc.weight", {35840, 5280}},
        {"transformer.coda.1.norm_4.weight", {5280}},
        {"transformer.adapter.weight", {5280, 10560}},
        {"transformer.ln_f.weight", {5280}}}},
      // yuhuili/EAGLE3-LLaMA3.1-Instruct-8B
      {"LlamaForCausalLMEagle3",
       R"("vocab_size": 128256, "draft_vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
       "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 1)",
       {{"fc.weight", {4096, 12288}},
        {"midlayer.self_attn.k_proj.weight", {1024, 8192}},
        {"midlayer.self_attn.o_proj.weight", {4096, 4096}},
        {"midlayer.hidden_norm.weight", {4096}},
        {"d2t", {32000}},
        {"lm_head.weight", {32000, 4096}}}},
  };
  for (const Stored& model : models) {
    const ModuleTree tree = tree_of(model.architecture, model.sizes);
    for (const auto& [name, shape] : model.tensors) expect_stored(tree, name, shape);
  }
}

// What grows with a text, and what does not: windows, caches of passes, and layers that read another's.
TEST(PublishedHub, CachesAreThoseOfTheClasses) {
  const ModuleTree ouro = tree_of("OuroForCausalLM", kSmall);
  ASSERT_EQ(ouro.attention.size(), 4U);  // total_ut_steps
  const ModuleTree domyn = tree_of("DomynEdgeForCausalLM", std::string(kSmall) + R"(, "per_layer_config": [
      {"head_dim": 8}, {"head_dim": 8}, {"head_dim": 8}], "window_sizes": [[4, 0], [-1, 0], [4, 0]])");
  ASSERT_EQ(domyn.attention.size(), 2U);
  EXPECT_EQ(domyn.attention[0].layers, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_EQ(domyn.attention[0].window, 5U);
  EXPECT_EQ(domyn.attention[1].window, 0U);
  const ModuleTree dory =
      tree_of("DoryForCausalLM", R"("num_hidden_layers": 8, "n_input_layers": 1, "n_output_layers": 1,
      "n_recurrent_loops": 3)");
  ASSERT_EQ(dory.attention.size(),
            6U);  // layer 6 with all it sees, 0, 2 and 4 with a window; two passes more
  EXPECT_EQ(dory.attention[4].layers, (std::vector<std::uint64_t>{2, 4}));
  EXPECT_EQ(dory.attention[4].window, 1024U);
  const ModuleTree flash = tree_of("Phi4FlashForCausalLM", R"("vocab_size": 80, "hidden_size": 24,
      "intermediate_size": 20, "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
      "tie_word_embeddings": true)");
  ASSERT_EQ(flash.attention.size(), 3U);
  EXPECT_EQ(flash.attention[0].window, 512U);
  EXPECT_EQ(flash.attention[1].layers, (std::vector<std::uint64_t>{5}));
  EXPECT_FALSE(flash.attention[2].cached);
  ASSERT_EQ(flash.recurrent.size(), 1U);
  EXPECT_EQ(flash.recurrent[0].layers, (std::vector<std::uint64_t>{0, 2, 4}));
  const ModuleTree raven = tree_of("RavenForCausalLM", R"("mean_recurrence": 3)");
  ASSERT_EQ(raven.attention.size(), 3U);
  EXPECT_EQ(raven.attention[2].layers, (std::vector<std::uint64_t>{2, 3, 4, 5}));
  const ModuleTree ring = tree_of("BailingMoeLinearV2ForCausalLM", R"("num_hidden_layers": 12)");
  ASSERT_EQ(ring.attention.size(), 1U);  // the last of each five, and those behind the last whole group
  EXPECT_EQ(ring.attention[0].layers, (std::vector<std::uint64_t>{4, 9, 10, 11}));
  const ModuleTree spark = tree_of("Spark2_5ForCausalLM", R"("num_hidden_layers": 5)");
  ASSERT_EQ(spark.attention.size(), 2U);
  EXPECT_EQ(spark.attention[0].layers, (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(spark.attention[1].window, 512U);
}

TEST(PublishedHub, RefuseWhatNobodyTells) {
  const std::pair<const char*, const char*> refused[] = {
      {"LLaDAModelLM", R"("block_type": "sequential")"},
      {"LLaDA2MoeModelLM", R"("hidden_size": 24)"},
      {"SkyworkForCausalLM", R"("num_experts": [16])"},
      {"KORMoForCausalLM", R"("vocab_size": 80)"},
      {"OpenELMForCausalLM", R"("num_transformer_layers": 2, "ffn_multipliers": [0.5, 4.0])"},
      {"OpenELMForCausalLM", R"("num_transformer_layers": 1, "ffn_multipliers": [0.5], "num_query_heads": [0],
       "num_kv_heads": [0])"},
      {"Step3TextForCausalLM", R"("moe_layers_enum": "1,x")"},
      {"Step3TextForCausalLM", R"("num_hidden_layers": 2)"},
      {"DoryForCausalLM", R"("n_input_layers": 90)"},
      {"LongcatFlashNgramForCausalLM",
       R"("ngram_vocab_size_ratio": 2, "emb_neighbor_num": 1, "emb_split_num": 1)"},
      {"MiniCPMSALAForCausalLM", R"("mixer_types": ["delta"])"},
      {"LlamaForCausalLMEagle3", R"("num_aux_hidden_states": 0)"},
      {"GigaChat35ForCausalLM", R"("full_attention_layers": [99])"},
      {"BailingMoeLinearV2ForCausalLM", R"("head_dim": 64)"},
      {"Rwkv6ForCausalLM", R"("hidden_size": 2048)"},
      {"RavenForCausalLM", R"("n_layers": 9)"},
      {"BailingMoeLinearV2ForCausalLM", R"("moe_shared_expert_intermediate_size": 1024)"},
  };
  for (const auto& [architecture, keys] : refused)
    EXPECT_THROW(tree_of(architecture, keys), Error) << architecture;
}

}  // namespace
}  // namespace assay
