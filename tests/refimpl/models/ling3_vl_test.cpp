// Ling 3 behind an image encoder: of text it is Ling 3, bit for bit.
#include "tests/refimpl/models/golden_run.h"
#include "tests/refimpl/models/made_weights.h"

namespace assay {
namespace {

constexpr const char* kText = R"({"hidden_size": 24, "intermediate_size": 29, "num_hidden_layers": 4,
  "num_attention_heads": 3, "head_dim": 5, "layer_group_size": 2, "first_k_dense_replace": 1, "q_lora_rank": null,
  "kv_lora_rank": 9, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 7, "num_experts": 4,
  "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "num_shared_experts": 1, "moe_intermediate_size": 13,
  "moe_shared_expert_intermediate_size": 17, "routed_scaling_factor": 2.5, "no_kda_lora": true,
  "kda_safe_gate": true, "kda_lower_bound": -5, "short_conv_kernel_size": 4,
  "gated_attention_proj_granularity_type": "head_wise", "rms_norm_eps": 1e-6, "rope_theta": 6000000,
  "vocab_size": 61, "max_position_embeddings": 64, "tie_word_embeddings": false})";

std::vector<double> logits_of(const nlohmann::json& config) {
  const test::TempDir place;
  test::put_made_model(place.path(), config.dump());
  test::Runner run(place.path().string(), Precision::f64);
  return run({3, 17, 50, 8, 8, 41, 2});
}

TEST(Ling3Vl, SaysOfTextWhatLing3Says) {
  nlohmann::json alone = nlohmann::json::parse(kText), seeing;
  alone["architectures"] = {"BailingMoeV3ForCausalLM"};
  seeing["architectures"] = {"BailingMoeV3VLForConditionalGeneration"};
  seeing["model_type"] = "bailing_moe_v3_vl";
  seeing["text_config"] = nlohmann::json::parse(kText);
  seeing["vision_config"] = {{"depth", 1},
                             {"hidden_size", 8},
                             {"intermediate_size", 6},
                             {"num_heads", 2},
                             {"patch_size", 2},
                             {"temporal_patch_size", 2},
                             {"spatial_merge_size", 1},
                             {"num_position_embeddings", 4},
                             {"disable_merger_proj", true},
                             {"deepstack_visual_indexes", nlohmann::json::array()}};
  const std::vector<double> said = logits_of(seeing);
  EXPECT_GT(test::largest(said), 0);
  EXPECT_EQ(said, logits_of(alone));
}

}  // namespace
}  // namespace assay
