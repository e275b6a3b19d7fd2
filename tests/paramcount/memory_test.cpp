// Bytes of weights and caches against published files and figures.
#include "paramcount/memory.h"

#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/model/weight_bytes.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

struct KvCase {
  const char* config;
  std::uint64_t per_token, beyond_windows;
};

void PrintTo(const KvCase& c, std::ostream* out) {
  *out << c.config;
}

class KvBytesPerToken : public testing::TestWithParam<KvCase> {};

TEST_P(KvBytesPerToken, Bf16) {
  const fs::path path = test::published_config(GetParam().config);
  const KvCache cache = kv_cache(describe(ModelConfig::read(path)), {});
  EXPECT_EQ(cache.per_token, GetParam().per_token);
  EXPECT_EQ(cache.per_token_beyond, GetParam().beyond_windows);
}

// Counted by others: 2 × layers × kv heads × head dim × 2; MLA: layers × (512 + 64) × 2. Kimi K2's 70,272 is
// also what its deployment guide states.
INSTANTIATE_TEST_SUITE_P(
    Configs, KvBytesPerToken,
    testing::Values(KvCase{"Llama-2-7b-hf", 524'288, 524'288}, KvCase{"Llama-3.1-8B", 131'072, 131'072},
                    KvCase{"Llama-3.2-1B-Instruct", 32'768, 32'768},
                    KvCase{"Mistral-7B-Instruct-v0.3", 131'072, 131'072},
                    KvCase{"Mixtral-8x7B-v0.1", 131'072, 131'072},
                    KvCase{"Qwen2.5-7B-Instruct", 57'344, 57'344}, KvCase{"Qwen3-0.6B", 114'688, 114'688},
                    KvCase{"Qwen3-8B", 147'456, 147'456}, KvCase{"Qwen3-30B-A3B", 98'304, 98'304},
                    KvCase{"Qwen3-235B-A22B-FP8", 192'512, 192'512},
                    KvCase{"gemma-2-9b-it", 344'064, 172'032}, KvCase{"gpt-oss-20b", 49'152, 24'576},
                    KvCase{"GLM-4.5", 376'832, 376'832}, KvCase{"glm-4-9b-chat", 40'960, 40'960},
                    KvCase{"MiniMax-M2.5", 253'952, 253'952}, KvCase{"phi-4", 204'800, 204'800},
                    KvCase{"DeepSeek-V2-Lite", 31'104, 31'104}, KvCase{"DeepSeek-V3", 70'272, 70'272},
                    KvCase{"Kimi-K2-Instruct", 70'272, 70'272}),
    [](const auto& info) {
      std::string name = info.param.config;
      for (char& c : name) {
        if (c == '-' || c == '.') c = '_';
      }
      return name;
    });

// By hand: hidden 64, one head of 64, MLP 128, vocabulary 96. NVFP4: half a byte a code, a byte for 16 of them, 8 a
// matrix; FP8: a byte a code, 4 a matrix; MXFP8: a byte a code, one for 32.
TEST(WeightBytes, MixedPrecisionIsCountedModuleByModule) {
  const std::string sizes = R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 1, "num_key_value_heads": 1,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "quantization_config": )";
  const auto bytes = [&](const std::string& quantization) {
    const auto config =
        ModelConfig::from_json(parse_json(sizes + quantization + "}", "config.json"), "config.json");
    return weight_bytes(describe(config), configured_format(config)).main;
  };
  const std::uint64_t plain = 2 * (2 * 96 * 64 + 5 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128));
  const std::uint64_t mlp = 128 * 64, square = 64 * 64;
  const std::uint64_t mlp_nvfp4 = mlp / 2 + mlp / 16 + 8, square_fp8 = square + 4, mlp_mxfp8 = mlp + mlp / 32;
  ASSERT_EQ(bytes("null"), plain);
  const std::string layers = R"("quantized_layers": {
      "model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4", "group_size": 16},
      "model.layers.1.mlp": {"quant_algo": "NVFP4", "group_size": 16},
      "model.layers.1.self_attn.q_proj": {"quant_algo": "FP8"},
      "model.layers.0.mlp.down_proj": {"quant_algo": "MXFP8"}}})";
  EXPECT_EQ(bytes(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", )" + layers),
            plain - 2 * (5 * mlp + square) + 4 * mlp_nvfp4 + square_fp8 + mlp_mxfp8);
  // The same of compressed-tensors: groups that name modules, by expressions too; "Linear" is all of them.
  const std::string eight = R"("weights": {"num_bits": 8, "type": "float", "strategy": "tensor"})",
                    four = R"("weights": {"num_bits": 4, "type": "float", "group_size": 16})";
  EXPECT_EQ(bytes(R"({"quant_method": "compressed-tensors", "config_groups": {
                    "a": {"targets": ["re:.*self_attn\\.q_proj$"], )" +
                  eight + R"(},
                    "b": {"targets": ["model.layers.0.mlp.up_proj", "re:.*layers\\.1\\.mlp"], )" +
                  four + "}}}"),
            plain - 2 * (4 * mlp + 2 * square) + 4 * mlp_nvfp4 + 2 * square_fp8);
  EXPECT_EQ(
      bytes(R"({"quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*mlp.*"], "config_groups": {
                    "a": {"targets": ["Linear"], )" +
            eight + "}}}"),
      plain - 2 * 8 * square + 8 * square_fp8);
}

TEST(WeightBytes, OnlyNamedModulesOfAMixtureAreQuantized) {
  const std::string text = R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 1, "quantization_config":
    {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
      "model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4", "group_size": 16}, "lm_head": {"quant_algo": "FP8"}}}})";
  const auto config = ModelConfig::from_json(parse_json(text, "config.json"), "config.json");
  const ModuleTree tree = describe(config);
  const WeightFormat format = configured_format(config);
  std::vector<std::string> quantized;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices& at) {
    if (quantizes(format, spec, at.layer)) quantized.push_back(name);
  });
  EXPECT_EQ(quantized, (std::vector<std::string>{"model.layers.0.mlp.up_proj.weight", "lm_head.weight"}));
}

TEST(KvCache, ExpandedLatentAttention) {
  const fs::path path = test::published_config("DeepSeek-V3");
  EXPECT_EQ(kv_cache(describe(ModelConfig::read(path)), {}).expanded_per_token, 4'997'120u);
}

TEST(KvCache, WindowsStopGrowing) {
  const fs::path path = test::published_config("gpt-oss-20b");
  KvOptions options;
  options.context = 1000;
  options.batch = 3;
  // 12 layers keep 1000 tokens and 12 keep 128, of 2 × 8 × 64 values each.
  EXPECT_EQ(kv_cache(describe(ModelConfig::read(path)), options).bytes,
            3u * 12 * (1000 + 128) * 2 * 8 * 64 * 2);
}

TEST(KvCache, HeadsAreRepeatedOverMoreRanksThanThereAre) {
  const fs::path path = test::published_config("Llama-3.1-8B");
  const ModuleTree tree = describe(ModelConfig::read(path));
  KvOptions options;
  options.tensor_parallel = 8;
  EXPECT_EQ(kv_cache(tree, options).per_token, 131'072u / 8);
  options.tensor_parallel = 16;
  EXPECT_EQ(kv_cache(tree, options).per_token, 131'072u / 8);
}

TEST(WeightBytes, DeepSeekV3AsItsFilesHold) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const ModelConfig config = ModelConfig::read(path);
  EXPECT_EQ(weight_bytes(describe(config), configured_format(config)).total, 688'574'839'360u);
  EXPECT_EQ(weight_bytes(describe(config), *weight_format("fp8-block")).total, 688'574'839'360u);
}

WeightFormat format_of(std::string_view quantization) {
  const std::string json =
      R"({"architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16", "quantization_config": )" +
      std::string(quantization) + "}";
  return configured_format(ModelConfig::from_json(parse_json(json, "config.json", {}), "config.json"));
}

TEST(WeightFormat, OfEveryDialect) {
  EXPECT_EQ(format_of(R"({"quant_method": "bitsandbytes", "load_in_4bit": true})").scale_bytes, 4u);
  EXPECT_EQ(format_of(R"({"quant_method": "bitsandbytes", "load_in_4bit": true,
                          "bnb_4bit_use_double_quant": true})")
                .scale_bytes,
            1u);
  EXPECT_EQ(format_of(R"({"quant_method": "bitsandbytes", "load_in_8bit": true})").name, "int8-channel");
  EXPECT_EQ(format_of(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})").name, "nvfp4");
  EXPECT_EQ(format_of(R"({"quant_method": "modelopt", "quant_algo": "FP8"})").name, "fp8-tensor");
  EXPECT_EQ(format_of(R"({"quant_method": "fbgemm_fp8"})").name, "fp8-channel");
  EXPECT_EQ(format_of(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})").name, "fp8-block");
  EXPECT_EQ(format_of(R"({"quant_method": "gptq", "bits": 4, "group_size": 128})").name, "int4-g128");
  EXPECT_EQ(format_of(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights":
                          {"num_bits": 8, "type": "float", "strategy": "channel"}}}})")
                .name,
            "fp8-channel");
}

TEST(WeightFormat, UnknownMethodIsSaidToBeUnknown) {
  const WeightFormat format = format_of(R"({"quant_method": "hqq\u001b"})");
  EXPECT_EQ(format.name, "bf16");
  EXPECT_NE(format.title.find("hqq\\x1b"), std::string::npos) << format.title;
  EXPECT_NE(format.title.find("not known"), std::string::npos) << format.title;
}

// One matrix of 256 × 512, alone: codes, then scales.
TEST(WeightFormat, BytesOfAMatrix) {
  const auto bytes = [](std::string_view quantization) {
    TensorSpec spec;
    spec.name = "model.layers.0.mlp.up_proj.weight";
    spec.shape = {256, 512};
    spec.quantizable = true;
    const WeightFormat format = format_of(quantization);
    return WeightSizes({}, format).of_tensor(spec, spec.shape, 0);
  };
  EXPECT_EQ(bytes(R"({"quant_method": "bitsandbytes", "load_in_4bit": true})"),
            256u * 512 / 2 + 256u * 512 / 64 * 4);
  EXPECT_EQ(bytes(R"({"quant_method": "modelopt", "quant_algo": "FP8"})"), 256u * 512 + 4);
  EXPECT_EQ(bytes(R"({"quant_method": "fbgemm_fp8"})"), 256u * 512 + 256 * 4);
  EXPECT_EQ(bytes(R"({"quant_method": "hqq"})"), 256u * 512 * 2);
}

TEST(WeightBytes, Bf16IsTwoAParameter) {
  const fs::path path = test::published_config("Llama-3.1-8B");
  EXPECT_EQ(weight_bytes(describe(ModelConfig::read(path)), *weight_format("bf16")).main,
            2u * 8'030'261'248u);
}

// gpt-oss-20b's repository holds 13,761,264,768 bytes of tensors: MXFP4 experts, the rest BF16.
TEST(WeightBytes, GptOssMxfp4) {
  const fs::path path = test::published_config("gpt-oss-20b");
  const ModelConfig config = ModelConfig::read(path);
  // 20,914,757,184 parameters, of which 24 × 32 × 3 × 2880 × 2880 in experts, at 17 bytes for 32.
  const std::uint64_t experts = 24ull * 32 * 3 * 2880 * 2880;
  EXPECT_EQ(weight_bytes(describe(config), configured_format(config)).main,
            2 * (20'914'757'184ull - experts) + experts / 32 * 17);
}

// Published GGUF files are some megabytes of metadata larger than their tensors.
TEST(WeightBytes, LlamaGgufFiles) {
  const fs::path path = test::published_config("Llama-3.1-8B");
  const ModuleTree tree = describe(ModelConfig::read(path));
  const auto megabytes = [&](const char* format) {
    return weight_bytes(tree, *weight_format(format)).main / 1'000'000;
  };
  EXPECT_EQ(megabytes("q4_k_m"), 4'912u);  // 4,920,739,232 bytes in the file
  EXPECT_EQ(megabytes("q8_0"), 8'532u);    // 8,540,771,744 bytes in the file
}

TEST(WeightBytes, DeepSeekR1Q4KM) {
  const fs::path path = test::published_config("DeepSeek-R1");
  const double gib =
      static_cast<double>(weight_bytes(describe(ModelConfig::read(path)), *weight_format("q4_k_m")).main) /
      (1024.0 * 1024 * 1024);
  EXPECT_NEAR(gib, 376.65, 0.5);  // llama.cpp's own report of the file
}

}  // namespace
}  // namespace assay
