// The sizes that paramcount predicts are those of the file that convert writes: one list of tensors, one
// mix.
#include "core/model/gguf_tree_types.h"

#include <gtest/gtest.h>

#include <map>

#include "core/formats/json.h"
#include "core/model/gguf_export.h"
#include "core/model/stored_form.h"
#include "tests/support/checkpoints.h"

namespace assay {
namespace {

ModelConfig config_of(const char* text) {
  return ModelConfig::from_json(parse_json(text, "config.json"), "config.json");
}

constexpr const char* kQwen2By80 =
    R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 512,
  "hidden_size": 512, "intermediate_size": 768, "num_hidden_layers": 80, "num_attention_heads": 8,
  "num_key_value_heads": 1, "tie_word_embeddings": false})";
constexpr const char* kTiedLlama =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512,
  "hidden_size": 512, "intermediate_size": 800, "num_hidden_layers": 9, "num_attention_heads": 8,
  "num_key_value_heads": 2, "tie_word_embeddings": true})";
constexpr const char* kMixtral =
    R"({"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "vocab_size": 512,
  "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3, "num_attention_heads": 4,
  "num_key_value_heads": 2, "num_local_experts": 8, "num_experts_per_tok": 2, "tie_word_embeddings": false})";
constexpr const char* kDeepSeek = R"({"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
  "vocab_size": 512, "hidden_size": 512, "intermediate_size": 1024, "moe_intermediate_size": 256, "num_hidden_layers": 4,
  "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 8, "n_shared_experts": 1,
  "num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1, "q_lora_rank": 256,
  "kv_lora_rank": 256, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "routed_scaling_factor": 2.5,
  "norm_topk_prob": true, "scoring_func": "sigmoid", "topk_method": "noaux_tc", "tie_word_embeddings": false,
  "num_nextn_predict_layers": 0})";

using Dimensions = std::map<std::string, std::vector<std::uint64_t>>;

TEST(GgufTreeTypes, TensorsAreThoseOfTheExport) {
  for (const char* text : {kQwen2By80, kTiedLlama, kMixtral, kDeepSeek}) {
    const ModelConfig config = config_of(text);
    const ModuleTree tree = describe(config);
    std::vector<test::StoredTensor> stored;
    for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
      if (spec.storage == Storage::own) stored.push_back({name, ElementType::BF16, spec.shape});
    });
    const Checkpoint checkpoint = test::make_checkpoint(stored);
    const GgufFamily* family = gguf_family(tree);
    ASSERT_NE(family, nullptr);
    Dimensions written, foretold;
    for (const GgufTensor& tensor :
         gguf_tensors(config, tree, *family, checkpoint, find_stored(checkpoint, std::nullopt)))
      written[tensor.made.name] = {tensor.made.shape.rbegin(), tensor.made.shape.rend()};
    const GgufTreeTypes types(tree, GgufFileType::Q4_K_M);
    for (const MixTensor& tensor : types.tensors()) foretold[tensor.name] = tensor.dimensions;
    EXPECT_EQ(foretold, written) << tree.family;
  }
}

std::map<std::string, ElementType> types_of(const char* text) {
  const ModuleTree tree = describe(config_of(text));
  const GgufTreeTypes made(tree, GgufFileType::Q4_K_M);
  std::map<std::string, ElementType> types;
  for (std::size_t i = 0; i < made.types().size(); ++i) types[made.tensors()[i].name] = made.types()[i];
  return types;
}

// llama-quant.cpp: models of 80 layers that are Qwen2's too have Q5_K where attn_v would be Q4_K; MLA's
// halves get no more bits; a fused attn_qkv is treated as attn_v, Q6_K in every third layer.
TEST(GgufTreeTypes, AreLlamaCppsWhereACopyOfTheRulesWasNot) {
  const auto qwen = types_of(kQwen2By80);
  EXPECT_EQ(qwen.at("blk.0.attn_v.weight"), ElementType::Q6_K);
  EXPECT_EQ(qwen.at("blk.10.attn_v.weight"), ElementType::Q5_K);
  EXPECT_EQ(qwen.at("blk.10.attn_k.weight"), ElementType::Q4_K);
  const auto mla = types_of(kDeepSeek);
  EXPECT_EQ(mla.at("blk.0.attn_k_b.weight"), ElementType::Q5_0);  // 128 columns are half a block
  EXPECT_EQ(mla.at("blk.3.attn_v_b.weight"), ElementType::Q4_K);
  const auto phi = types_of(R"({"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "vocab_size": 512,
    "hidden_size": 512, "intermediate_size": 768, "num_hidden_layers": 16, "num_attention_heads": 8,
    "num_key_value_heads": 8, "tie_word_embeddings": false})");
  EXPECT_EQ(phi.at("blk.0.attn_qkv.weight"), ElementType::Q6_K);
  EXPECT_EQ(phi.at("blk.3.attn_qkv.weight"), ElementType::Q4_K);
}

}  // namespace
}  // namespace assay
