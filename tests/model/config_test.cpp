// Configs that are wrong, incomplete or strange: an Error that names the key, a noted default, never a guess.
#include "core/model/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

ModelConfig config_of(std::string_view json) {
  return ModelConfig::from_json(parse_json(json, "config.json", {1 << 20, 64, true}), "config.json");
}

std::string error_of(std::string_view json) {
  try {
    describe(config_of(json));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.file(), "config.json");
    return error.line();
  }
  return "no error";
}

// A Llama with `more` keys, the last of which win.
std::string llama(std::string_view more) {
  return R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": false, )" +
         std::string(more) + "}";
}

void expect_error(const std::string& json, std::string_view part) {
  const std::string line = error_of(json);
  EXPECT_NE(line.find(part), std::string::npos) << line;
}

TEST(Config, WrongValuesAreNamed) {
  expect_error(llama(R"("hidden_size": -64)"), "hidden_size is negative");
  expect_error(llama(R"("hidden_size": 0)"), "hidden_size is 0");
  expect_error(llama(R"("hidden_size": "64")"), "hidden_size is string");
  expect_error(llama(R"("hidden_size": 64.5)"), "hidden_size is 64.5");
  expect_error(llama(R"("hidden_size": 9223372036854775808)"), "hidden_size is 9223372036854775808");
  expect_error(llama(R"("hidden_size": 1e300)"), "hidden_size");
  expect_error(llama(R"("hidden_size": true)"), "hidden_size is boolean");
  expect_error(llama(R"("num_hidden_layers": 1000000)"), "num_hidden_layers is 1000000");
  expect_error(llama(R"("attention_bias": 1)"), "attention_bias is number");
  expect_error(llama(R"("head_dim": 0)"), "head_dim is 0");
  expect_error(llama(R"("tie_word_embeddings": "yes")"), "tie_word_embeddings");
  expect_error(
      llama(R"("vocab_size": 4294967296, "hidden_size": 4294967296, "num_attention_heads": 4294967296,
                        "num_key_value_heads": 4294967296)"),
      "does not fit in 64 bits");
}

TEST(Config, ContradictionsAreNamed) {
  expect_error(llama(R"("num_attention_heads": 6)"),
               "hidden_size 64 is not divisible by num_attention_heads 6");
  expect_error(llama(R"("num_key_value_heads": 3)"),
               "num_attention_heads 4 is not divisible by num_key_value_heads 3");
  const std::string mixtral = R"({"architectures": ["MixtralForCausalLM"], "num_local_experts": 4, )";
  expect_error(mixtral + R"("num_experts_per_tok": 5})", "num_experts_per_tok 5 exceeds num_local_experts 4");
  expect_error(
      R"({"architectures": ["Gemma2ForCausalLM"], "num_hidden_layers": 3, "layer_types": ["full_attention"]})",
      "layer_types lists 1 layers, num_hidden_layers says 3");
  expect_error(
      R"({"architectures": ["GraniteMoeHybridForCausalLM"], "num_hidden_layers": 3, "layers_block_type": ["mamba"]})",
      "layers_block_type lists 1 layers, num_hidden_layers says 3");
  expect_error(
      R"({"architectures": ["Gemma2ForCausalLM"], "num_hidden_layers": 1, "layer_types": ["mamba"]})",
      "layer_types holds \"mamba\"");
}

TEST(Config, UnknownArchitecturesAreNotGuessed) {
  const std::string line = error_of(R"({"architectures": ["LlamaForCausalLM2"], "model_type": "llama"})");
  EXPECT_NE(line.find("architecture \"LlamaForCausalLM2\" is unknown"), std::string::npos) << line;
  EXPECT_NE(line.find("llama (Llama"), std::string::npos) << line;
  EXPECT_NE(error_of(R"({"architectures": ["DeepseekV5ForCausalLM"]})").find("deepseek_v3"),
            std::string::npos);
  expect_error(R"({"hidden_size": 64})", "names no architecture");
  expect_error(R"([])", "a model config is a JSON object");
  expect_error(R"({"architectures": "LlamaForCausalLM"})", "architectures is not a list");
  expect_error(R"({"architectures": [3]})", "architectures[0]");
}

TEST(Config, ModelTypeServesWhereNoArchitectureIsNamed) {
  EXPECT_EQ(describe(config_of(R"({"model_type": "qwen3"})")).family, "qwen3");
}

TEST(Config, DefaultsTakenAreNoted) {
  const fs::path path = test::published_config("gemma-3-4b-it");
  const ModuleTree tree = describe(ModelConfig::read(path));
  std::map<std::string, std::string> taken;
  for (const DefaultTaken& entry : tree.defaults) taken[entry.key] = entry.value;
  EXPECT_EQ(taken["num_attention_heads"], "8");
  EXPECT_EQ(taken["num_key_value_heads"], "4");
  EXPECT_EQ(taken["head_dim"], "256");
  EXPECT_EQ(taken["vocab_size"], "262208");
  EXPECT_EQ(taken["tie_word_embeddings"], "true");
  EXPECT_FALSE(taken.contains("hidden_size"));
}

// Mistral3ForConditionalGeneration and Qwen3VLMoeForConditionalGeneration of transformers 5.19, with the configs that
// save_pretrained() writes of their defaults, tie by the document; 4.57 by text_config.
TEST(Config, WhatTiesWhereDocumentAndTextContradict) {
  const auto tied = [](bool document, bool text, std::string_view version) {
    return describe(config_of(fmt::format(
                        R"({{"architectures": ["Mistral3ForConditionalGeneration"], "tie_word_embeddings": {},
                            "transformers_version": {}, "text_config": {{"tie_word_embeddings": {}}}}})",
                        document, version, text)))
        .tied_embeddings;
  };
  for (const std::string_view five : {R"("5.19.0")", R"("5.0.0.dev0")", R"("10.1")"}) {
    EXPECT_TRUE(tied(true, false, five));
    EXPECT_FALSE(tied(false, true, five));
  }
  for (const std::string_view other : {R"("4.57.1")", R"("")", R"("five")", "null", "5"}) {
    EXPECT_FALSE(tied(true, false, other));
    EXPECT_TRUE(tied(false, true, other));
  }
}

TEST(Config, NoDefaultNoNumber) {
  // DeepseekV2Config leaves the experts a token visits to None.
  expect_error(R"({"architectures": ["DeepseekV2ForCausalLM"]})",
               "num_experts_per_tok is missing, and the family has no default for it (read as deepseek_v2)");
}

TEST(Config, WindowsDifferByLayer) {
  const ModuleTree tree =
      describe(config_of(R"({"architectures": ["Gemma3ForCausalLM"], "num_hidden_layers": 12,
                                                 "sliding_window": 512})"));
  ASSERT_EQ(tree.attention.size(), 2u);
  EXPECT_EQ(tree.attention[0].layers, (std::vector<std::uint64_t>{5, 11}));
  EXPECT_EQ(tree.attention[0].window, 0u);
  EXPECT_EQ(tree.attention[1].layers.size(), 10u);
  EXPECT_EQ(tree.attention[1].window, 512u);
}

TEST(Config, QuantizationDialects) {
  const auto quantization = [](std::string_view object) {
    return config_of(llama("\"quantization_config\": " + std::string(object))).quantization().value();
  };
  const auto fp8 = quantization(R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 64],
                                    "scale_fmt": "ue8m0", "activation_scheme": "dynamic",
                                    "modules_to_not_convert": ["lm_head"]})");
  EXPECT_EQ(fp8.method, "fp8");
  EXPECT_EQ(fp8.block_rows, 128u);
  EXPECT_EQ(fp8.block_columns, 64u);
  EXPECT_EQ(fp8.scale_format, "ue8m0");
  EXPECT_EQ(fp8.ignored, std::vector<std::string>{"lm_head"});
  const auto gptq =
      quantization(R"({"quant_method": "gptq", "bits": 4, "group_size": -1, "desc_act": true})");
  EXPECT_EQ(gptq.bits, 4u);
  EXPECT_FALSE(gptq.group_size);
  EXPECT_EQ(gptq.activation_order, true);
  const auto packed = quantization(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
      "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int",
      "strategy": "group", "group_size": 128, "symmetric": true}}}, "ignore": ["lm_head"]})");
  ASSERT_EQ(packed.groups.size(), 1u);
  EXPECT_EQ(packed.groups[0].bits, 4u);
  EXPECT_EQ(packed.groups[0].group_size, 128u);
  EXPECT_THROW(quantization(R"({"weight_block_size": [128]})"), Error);
  EXPECT_THROW(quantization(R"({"weight_block_size": [0, 128]})"), Error);
  EXPECT_THROW(quantization(R"("fp8")"), Error);
  EXPECT_THROW(quantization(R"({"bits": -4})"), Error);
}

TEST(Config, BitsAndBytesAndModelOpt) {
  const auto quantization = [](std::string_view object) {
    return config_of(llama("\"quantization_config\": " + std::string(object))).quantization().value();
  };
  const auto four = quantization(
      R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "load_in_8bit": false,
          "bnb_4bit_use_double_quant": true})");
  EXPECT_EQ(four.bits, 4u);
  EXPECT_EQ(four.nested_scales, true);
  EXPECT_EQ(quantization(R"({"quant_method": "bitsandbytes", "load_in_8bit": true})").bits, 8u);
  const auto modelopt = quantization(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})");
  EXPECT_EQ(modelopt.method, "modelopt");
  EXPECT_EQ(modelopt.format, "NVFP4");
}

// A DeepSeek-V3 of five layers whose counts can be done by hand.
std::string small_deepseek(std::string_view more) {
  return R"({"architectures": ["DeepseekV3ForCausalLM"], "vocab_size": 10, "hidden_size": 8,
             "intermediate_size": 16, "moe_intermediate_size": 4, "num_hidden_layers": 5,
             "num_attention_heads": 2, "q_lora_rank": 4, "kv_lora_rank": 4, "qk_nope_head_dim": 2,
             "qk_rope_head_dim": 2, "v_head_dim": 2, "n_routed_experts": 4, "num_experts_per_tok": 2,
             "n_shared_experts": 1, "first_k_dense_replace": 1, )" +
         std::string(more) + "}";
}

std::uint64_t layers_titled(const ModuleTree& tree, std::string_view title) {
  for (const Module& module : tree.modules) {
    if (module.title == title) return module.repeat.indices.size();
  }
  return 0;
}

TEST(Config, MoeLayerFreqIsANumberOrAList) {
  const auto dense = [](std::string_view value) {
    const auto tree = describe(config_of(small_deepseek("\"moe_layer_freq\": " + std::string(value))));
    EXPECT_EQ(layers_titled(tree, "MoE layers") + layers_titled(tree, "dense layers"), 5u);
    return layers_titled(tree, "dense layers");
  };
  EXPECT_EQ(dense("1"), 1u);
  EXPECT_EQ(dense("2"), 3u);  // layers 0, 1, 3
  EXPECT_EQ(dense("[0, 1, 1, 1, 1]"), 1u);
  EXPECT_EQ(dense("[0, 0, 0, 1, 1]"), 3u);
  expect_error(small_deepseek(R"("moe_layer_freq": [0, 1])"), "moe_layer_freq lists 2 layers");
  expect_error(small_deepseek(R"("moe_layer_freq": [0, 1, 1, 1, -1])"), "moe_layer_freq[] is negative");
}

// configuration_deepseek.py: "n_shared_experts: number of shared experts, None means dense model".
TEST(Config, NullSharedExpertsAreNone) {
  const auto total = [](std::string_view more) {
    return count(describe(config_of(small_deepseek(more)))).total;
  };
  EXPECT_EQ(total(R"("n_shared_experts": null)"), total(R"("n_shared_experts": 0)"));
  EXPECT_EQ(total(R"("n_shared_experts": 1)") - total(R"("n_shared_experts": null)"), 4u * 3 * 8 * 4);
  EXPECT_TRUE(describe(config_of(small_deepseek(R"("num_nextn_predict_layers": null)"))).mtp.empty());
}

// tiiuae/falcon-40b as first released: no new_decoder_architecture, yet two norms a layer and 8 key heads.
TEST(Config, FirstFalcon40b) {
  const ModuleTree tree = describe(config_of(
      R"({"architectures": ["RWForCausalLM"], "model_type": "RefinedWeb", "alibi": false, "bias": false,
          "hidden_size": 8192, "n_head": 128, "n_head_kv": 8, "n_layer": 60, "parallel_attn": true,
          "vocab_size": 65024})"));
  EXPECT_EQ(count(tree).total, 41'303'293'952u);
}

TEST(Config, KnownLanguageModelInsideAnUnknownOne) {
  const ModuleTree tree =
      describe(config_of(R"({"architectures": ["NobodysForConditionalGeneration"], "model_type": "nobodys",
                             "text_config": {"model_type": "mistral", "hidden_size": 64}})"));
  EXPECT_EQ(tree.family, "mistral");
  EXPECT_EQ(tree.hidden_size, 64U);
  expect_error(R"({"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
                   "text_config": {"model_type": 3}})",
               "closest families known");
}

TEST(Config, CutsFollowHeads) {
  const ModuleTree tree =
      describe(config_of(R"({"architectures": ["Phi3ForCausalLM"], "num_key_value_heads": 8})"));
  bool seen = false;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence&) {
    if (spec.role != Role::qkv) return;
    seen = true;
    EXPECT_EQ(spec.parallel.partition, Partition::columns);
    EXPECT_EQ(spec.parallel.dimension, 0u);
    ASSERT_EQ(spec.parallel.members.size(), 3u);
    EXPECT_EQ(spec.parallel.members[1].units, 8u);
    EXPECT_EQ(spec.shape[0], spec.parallel.members[0].size + 2 * spec.parallel.members[1].size);
  });
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace assay
