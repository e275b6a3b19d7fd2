// Trees in the layouts that other programs than a model's publisher save: names and shapes by hand, as
// transformers 5 (modeling_mixtral, modeling_qwen3_moe, modeling_minimax_m2, modeling_phimoe) and
// llm-compressor (modeling/moe) have them.
#include "core/model/expert_layout.h"

#include <gtest/gtest.h>

#include <set>

#include "core/formats/json.h"
#include "core/model/published_layout.h"
#include "core/model/reconcile.h"
#include "tests/support/checkpoints.h"

namespace assay {
namespace {

using test::StoredTensor;

constexpr ElementType kType = ElementType::BF16;

ModelConfig config_of(const std::string& text) {
  return ModelConfig::from_json(parse_json(text, "config.json"), "config.json");
}

// Two layers of four experts; hidden 64, width 32, vocabulary 128, 4 heads of 16, 2 key heads.
std::string mixture_config(const std::string& architecture, const std::string& type,
                           const std::string& more) {
  return R"({"architectures": [")" + architecture + R"("], "model_type": ")" + type +
         R"(", "vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": false, )" +
         more + "}";
}
const std::string kMixtral =
    mixture_config("MixtralForCausalLM", "mixtral",
                   R"("intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2)");
const std::string kGptOss =
    mixture_config("GptOssForCausalLM", "gpt_oss",
                   R"("intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2)");
const std::string kLlama4 = mixture_config("Llama4ForCausalLM", "llama4_text",
                                           R"("intermediate_size": 32, "intermediate_size_mlp": 96,
                                              "num_local_experts": 4, "num_experts_per_tok": 1,
                                              "interleave_moe_layer_step": 2)");

// All of a tree that is no routed expert, as published.
std::vector<StoredTensor> beside_experts(const ModuleTree& tree) {
  std::vector<StoredTensor> tensors;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    if (spec.part != Part::routed_expert) tensors.push_back({name, kType, spec.shape});
  });
  return tensors;
}

struct Answer {
  Reconciliation reconciled;
  Totals totals;
};
Answer ask(const ModelConfig& config, const std::vector<StoredTensor>& tensors) {
  const Checkpoint checkpoint = test::make_checkpoint(tensors);
  const ModuleTree tree = in_layout_of(describe(config), checkpoint);
  return {reconcile(tree, config, checkpoint), count(tree)};
}

void expect_whole(const ModelConfig& config, const std::vector<StoredTensor>& tensors) {
  const Answer answer = ask(config, tensors);
  const Totals published = count(describe(config));
  EXPECT_TRUE(answer.reconciled.findings.empty())
      << answer.reconciled.findings.front().code << " " << answer.reconciled.findings.front().tensor << " "
      << answer.reconciled.findings.front().message;
  EXPECT_EQ(answer.reconciled.difference, 0);
  EXPECT_EQ(answer.totals.total, published.total);
  EXPECT_EQ(answer.totals.active, published.active);
  EXPECT_EQ(answer.totals.matmul_active, published.matmul_active);
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

// model.layers.N.mlp.experts.gate_up_proj [experts, 2 width, hidden], …down_proj [experts, hidden, width].
std::vector<StoredTensor> transformers_5(const ModelConfig& config, const std::string& router) {
  std::vector<StoredTensor> tensors = beside_experts(describe(config));
  for (StoredTensor& tensor : tensors) {
    replace(tensor.name, ".block_sparse_moe.gate.", ".mlp." + router + ".");
    replace(tensor.name, ".block_sparse_moe.", ".mlp.");
  }
  for (const std::string layer : {"0", "1"}) {
    const std::string experts = "model.layers." + layer + ".mlp.experts.";
    tensors.push_back({experts + "gate_up_proj", kType, {4, 64, 64}});
    tensors.push_back({experts + "down_proj", kType, {4, 64, 32}});
  }
  return tensors;
}

TEST(ExpertLayout, StacksOfTransformers5AreTheModel) {
  expect_whole(config_of(kMixtral), transformers_5(config_of(kMixtral), "gate"));
  const std::string experts =
      R"("intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2, "lm_head_bias": true)";
  const ModelConfig phimoe = config_of(mixture_config("PhimoeForCausalLM", "phimoe", experts));
  expect_whole(phimoe, transformers_5(phimoe, "router"));
  const ModelConfig minimax = config_of(mixture_config("MiniMaxM2ForCausalLM", "minimax_m2", experts));
  expect_whole(minimax, transformers_5(minimax, "gate"));
  const ModelConfig qwen = config_of(mixture_config(
      "Qwen3MoeForCausalLM", "qwen3_moe",
      R"("moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 96)"));
  expect_whole(qwen, transformers_5(qwen, "gate"));
}

// Fused experts are one diagnosis; stacks that are published so, and what lies as published, are none.
TEST(ExpertLayout, StacksUnlikeReleasesAreTold) {
  const auto told = [](const std::string& text, bool fused) {
    const ModelConfig config = config_of(text);
    const ModuleTree published = describe(config);
    std::vector<StoredTensor> tensors;
    for_each_tensor(published, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
      tensors.push_back({name, kType, spec.shape});
    });
    if (fused) tensors = transformers_5(config, "gate");
    return stacked_unlike_releases(published, in_layout_of(published, test::make_checkpoint(tensors)));
  };
  const auto fused = told(kMixtral, true);
  ASSERT_TRUE(fused);
  EXPECT_EQ(fused->code, "model.experts_stacked");
  EXPECT_EQ(fused->severity, Severity::warning);
  EXPECT_NE(fused->message.find("; 4 of them"), std::string::npos) << fused->message;
  EXPECT_FALSE(told(kMixtral, false));
  EXPECT_FALSE(told(kGptOss, false));
}

TEST(ExpertLayout, AStackInFp8HasItsScales) {
  const std::string fp8 =
      R"(, "quantization_config": {"quant_method": "fp8", "weight_block_size": [32, 32]}})";
  const ModelConfig config = config_of(kMixtral.substr(0, kMixtral.size() - 1) + fp8);
  auto tensors = transformers_5(config, "gate");
  for (std::size_t i = 0, count = tensors.size(); i < count; ++i) {
    if (tensors[i].name.find(".experts.") == std::string::npos) continue;
    tensors[i].type = ElementType::F8_E4M3;
    const auto& shape = tensors[i].shape;
    tensors.push_back({tensors[i].name + "_scale_inv", ElementType::F32, {4, shape[1] / 32, shape[2] / 32}});
  }
  expect_whole(config, tensors);
  tensors.pop_back();
  const Answer without = ask(config, tensors);
  ASSERT_EQ(without.reconciled.findings.size(), 1u);
  EXPECT_EQ(without.reconciled.findings[0].code, "model.scale_missing");
}

// For convert, whose outputs bear the published names.
TEST(ExpertLayout, TensorsOfTransformers5TakeThePublishedNames) {
  const std::string experts = R"("intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2)";
  for (const auto& [architecture, type, router] :
       std::vector<std::tuple<const char*, const char*, const char*>>{
           {"MixtralForCausalLM", "mixtral", "gate"},
           {"PhimoeForCausalLM", "phimoe", "router"},
           {"MiniMaxM2ForCausalLM", "minimax_m2", "gate"}}) {
    const ModelConfig config = config_of(mixture_config(architecture, type, experts));
    const ModuleTree tree = describe(config);
    std::set<std::string> wanted, names;
    for_each_tensor(
        tree, [&](const std::string& name, const TensorSpec&, const TensorIndices&) { wanted.insert(name); });
    const Checkpoint checkpoint = test::make_checkpoint(transformers_5(config, router));
    for (const LogicalTensor& tensor :
         under_published_names(find_stored(checkpoint, std::nullopt), tree).tensors)
      names.insert(tensor.name);
    EXPECT_EQ(names, wanted) << type;
  }
}

// Qwen3-VL's mixtures are published [experts, inputs, outputs]; transformers 5.24 loads and saves them turned.
TEST(ExpertLayout, StacksThatTransformers5TurnedAreTheModel) {
  const ModelConfig config = config_of(
      R"({"architectures": ["Qwen3VLMoeForConditionalGeneration"], "model_type": "qwen3_vl_moe",
          "vision_config": {"depth": 1, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "patch_size": 2,
                            "out_hidden_size": 64, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]},
          "text_config": {"model_type": "qwen3_vl_moe_text", "vocab_size": 128, "hidden_size": 64,
                          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
                          "intermediate_size": 96, "moe_intermediate_size": 24, "num_experts": 4,
                          "num_experts_per_tok": 2, "tie_word_embeddings": false}})");
  const auto stacks = [&](bool turned, std::vector<StoredTensor> tensors) {
    for (const std::string layer : {"0", "1"}) {
      const std::string experts = "model.language_model.layers." + layer + ".mlp.experts.";
      tensors.push_back({experts + "gate_up_proj", kType, {4, turned ? 48U : 64U, turned ? 64U : 48U}});
      tensors.push_back({experts + "down_proj", kType, {4, turned ? 64U : 24U, turned ? 24U : 64U}});
    }
    return tensors;
  };
  const auto others = beside_experts(describe(config));
  expect_whole(config, stacks(false, others));
  const Answer turned = ask(config, stacks(true, others));
  ASSERT_EQ(turned.reconciled.findings.size(), 1u) << turned.reconciled.findings[1].message;
  EXPECT_EQ(turned.reconciled.findings[0].code, "model.experts_turned");
  EXPECT_EQ(turned.reconciled.difference, 0);
  EXPECT_EQ(turned.totals.total, count(describe(config)).total);
  auto mixed = stacks(true, others);
  mixed.back().shape = {4, 24, 64};
  EXPECT_EQ(ask(config, mixed).reconciled.misshapen_tensors, 1u);
}

// What is wrong with a stack is said once, of the stack.
TEST(ExpertLayout, FaultsOfAStackAreFew) {
  const ModelConfig config = config_of(kMixtral);
  auto tensors = transformers_5(config, "gate");
  tensors.back().shape = {3, 64, 32};
  const Answer fewer = ask(config, tensors);
  ASSERT_EQ(fewer.reconciled.findings.size(), 1u);
  EXPECT_EQ(fewer.reconciled.findings[0].code, "model.tensor_shape");
  tensors.pop_back();
  const Answer missing = ask(config, tensors);
  ASSERT_EQ(missing.reconciled.findings.size(), 1u);
  EXPECT_EQ(missing.reconciled.findings[0].tensor, "model.layers.1.mlp.experts.down_proj");
}

// One linear layer an expert and projection: mlp.experts.3.gate_proj.weight [width, hidden], .bias.
std::vector<StoredTensor> llm_compressor(const ModelConfig& config, const std::string& mixture, bool bias,
                                         std::vector<std::string> layers) {
  std::vector<StoredTensor> tensors = beside_experts(describe(config));
  for (const std::string& layer : layers) {
    for (const std::string expert : {"0", "1", "2", "3"}) {
      const std::string one = "model.layers." + layer + "." + mixture + ".experts." + expert + ".";
      for (const std::string own : {"gate_proj", "up_proj"}) {
        tensors.push_back({one + own + ".weight", kType, {32, 64}});
        if (bias) tensors.push_back({one + own + ".bias", kType, {32}});
      }
      tensors.push_back({one + "down_proj.weight", kType, {64, 32}});
      if (bias) tensors.push_back({one + "down_proj.bias", kType, {64}});
    }
  }
  return tensors;
}

TEST(ExpertLayout, StacksTakenApartAreTheModel) {
  const ModelConfig gpt_oss = config_of(kGptOss), llama4 = config_of(kLlama4);
  expect_whole(gpt_oss, llm_compressor(gpt_oss, "mlp", true, {"0", "1"}));
  expect_whole(llama4, llm_compressor(llama4, "feed_forward", false, {"1"}));
  const Answer whole = ask(gpt_oss, beside_experts(describe(gpt_oss)));  // as published
  EXPECT_EQ(whole.reconciled.missing_tensors, 8u);
}

}  // namespace
}  // namespace assay
