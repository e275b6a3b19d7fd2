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
            plain - 2 * (4 * mlp + 2 * square) + 4 * mlp_nvfp4 + 2 * (square + 2));  // a scale in BF16
  EXPECT_EQ(
      bytes(R"({"quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*mlp.*"], "config_groups": {
                    "a": {"targets": ["Linear"], )" +
            eight + "}}}"),
      plain - 2 * 8 * square + 8 * (square + 2));
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
  EXPECT_EQ(format_of(R"({"quant_method": "exl2", "bits": 4.25})").name, "bf16");  // told to be unknown
  EXPECT_EQ(format_of(R"({"bits": 4, "group_size": 64})").name, "mlx-int4-g64");
  EXPECT_EQ(
      format_of(R"({"quant_method": "quark", "export": {"pack_method": "reorder"}, "global_quant_config":
                          {"weight": {"dtype": "fp4", "group_size": 32, "qscheme": "per_group"}}})")
          .name,
      "mxfp4");
  EXPECT_EQ(format_of(R"({"quant_method": "gptq", "bits": 4, "group_size": 128})").name, "int4-g128");
  EXPECT_EQ(format_of(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights":
                          {"num_bits": 8, "type": "float", "strategy": "channel"}}}})")
                .name,
            "fp8-channel");
}

std::uint64_t bytes_of(const std::string& text) {
  const auto config = ModelConfig::from_json(parse_json(text, "config.json"), "config.json");
  return weight_bytes(describe(config), configured_format(config)).total;
}

// Qwen3-14B-MLX-4bit: total_size of its index. Whatever is a module is quantized, embedding and head too.
TEST(WeightBytes, MlxAsItsIndexSays) {
  EXPECT_EQ(
      bytes_of(R"({"architectures": ["Qwen3ForCausalLM"], "hidden_size": 5120, "intermediate_size": 17408,
      "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
      "vocab_size": 151936, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
      "quantization": {"group_size": 64, "bits": 4}})"),
      8'307'783'680u);
}

// Qwen-VL-Chat-Int4: total_size of its index. Codes, F16 scales, packed zero points, the group of each input; biases, tables,
// head and tower in F16. AutoGPTQ adds biases of zeros where the model has none: 4096 + 2 · 11008 + 4096 a layer.
TEST(WeightBytes, GptqAsItsIndexSays) {
  EXPECT_EQ(bytes_of(R"({"architectures": ["QWenLMHeadModel"], "model_type": "qwen", "hidden_size": 4096,
      "intermediate_size": 22016, "kv_channels": 128, "num_attention_heads": 32, "num_hidden_layers": 32,
      "vocab_size": 151936, "tie_word_embeddings": false, "torch_dtype": "float16", "visual": {"heads": 16,
      "image_size": 448, "layers": 48, "mlp_ratio": 4.9231, "output_dim": 4096, "patch_size": 14, "width": 1664},
      "quantization_config": {"bits": 4, "group_size": 128, "desc_act": false, "sym": true, "quant_method": "gptq"}})"),
            9'731'786'240u - 2 * 32 * 30'208);
}

// By hand: hidden 64, MLP 128, vocabulary 96, two experts behind a router. What is said of one module holds for it.
TEST(WeightBytes, ModulesApart) {
  const std::string sizes = R"({"architectures": ["MixtralForCausalLM"], "vocab_size": 96, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
    "num_local_experts": 2, "num_experts_per_tok": 1, "torch_dtype": "bfloat16", )";
  const auto mlx = [](std::uint64_t elements, std::uint64_t bits) {
    return elements * bits / 8 + elements / 64 * 4;
  };
  const std::uint64_t expert = 64 * 128, square = 64 * 64, table = 96 * 64, router = 2 * 64, norms = 3 * 64;
  const std::uint64_t all = 6 * expert + 4 * square + 2 * table + router;
  EXPECT_EQ(bytes_of(sizes + R"("quantization": {"group_size": 64, "bits": 4, "mode": "affine"}})"),
            mlx(all, 4) + 2 * norms);
  // Of the router, one matrix of all experts, and the head.
  EXPECT_EQ(bytes_of(sizes + R"("quantization": {"group_size": 64, "bits": 4,
                "model.layers.0.block_sparse_moe.gate": {"group_size": 64, "bits": 8},
                "model.layers.0.block_sparse_moe.switch_mlp.w2": {"group_size": 64, "bits": 2}, "lm_head": false,
                "model.layers.0.self_attn.q_proj": false}})"),
            mlx(all - router - 2 * expert - square - table, 4) + mlx(router, 8) + mlx(2 * expert, 2) +
                2 * (norms + square + table));
  // mxfp4: a byte each 32. Rows that are no whole groups stay (here: none are of 128).
  EXPECT_EQ(bytes_of(sizes + R"("quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}})"),
            all / 2 + all / 32 + 2 * norms);
  EXPECT_EQ(bytes_of(sizes + R"("quantization": {"group_size": 128, "bits": 4}})"),
            mlx(2 * expert, 4) - 2 * expert / 128 * 4 + 2 * (norms + all - 2 * expert));
  // GPTQModel's "dynamic", by expressions; AutoRound's "extra_config", by names, and without the group of each input.
  const auto gptq = [](std::uint64_t out, std::uint64_t in, std::uint64_t bits, std::uint64_t group) {
    return out * in * bits / 8 + in / group * (out * 2 + out * bits / 8) + 4 * in;
  };
  const std::uint64_t plain = 2 * (norms + router + 2 * table), w13 = gptq(128, 64, 4, 64),
                      w2 = gptq(64, 128, 4, 64);
  EXPECT_EQ(bytes_of(sizes + R"("quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64,
                "dynamic": {"-:.*q_proj": {}, "+:.*w2$": {"bits": 8, "group_size": 32}}}})"),
            plain + 4 * w13 + 2 * gptq(64, 128, 8, 32) + 3 * gptq(64, 64, 4, 64) + 2 * square);
  EXPECT_EQ(
      bytes_of(sizes + R"("quantization_config": {"quant_method": "auto-round", "bits": 4, "group_size": 64,
                "packing_format": "auto_round:auto_gptq", "extra_config":
                {"model.layers.0.self_attn.q_proj": {"bits": 16}, ".*k_proj": {"bits": 8}}}})"),
      plain + 4 * w13 + 2 * w2 + 2 * gptq(64, 64, 4, 64) + gptq(64, 64, 8, 64) + 2 * square -
          4 * (4 * 64 + 2 * 128 + 3 * 64));
}

// bitsandbytes: half a byte a code and, nested, a byte for 64, of these F32 for 256, and two tables; what its own list names
// stays.
TEST(WeightBytes, SkippedModulesStay) {
  const std::string sizes = R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 1, "num_key_value_heads": 1,
    "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true,
    "bnb_4bit_use_double_quant": true, "llm_int8_skip_modules": )";
  const std::uint64_t mlp = 3 * 64 * 128, rest = 2 * (2 * 96 * 64 + 5 * 64);
  const auto matrix = [](std::uint64_t n) { return n / 2 + n / 64 + (n / 64 + 255) / 256 * 4 + 64 + 1024; };
  const std::uint64_t mlp4 = 3 * matrix(64 * 128), square4 = 4 * matrix(64 * 64);
  EXPECT_EQ(bytes_of(sizes + "null}}"), rest + 2 * (mlp4 + square4));
  EXPECT_EQ(bytes_of(sizes + R"(["lm_head", "model.layers.1.mlp"]}})"), rest + mlp4 + 2 * square4 + 2 * mlp);
}

// DeepSeek-V4-Flash says expert_dtype beside its FP8 blocks: experts at 17 bytes for 32, E8M0 scales of a byte elsewhere.
TEST(WeightBytes, ExpertsOfDeepseekV4AreFp4) {
  const std::string sizes =
      R"({"architectures": ["DeepseekV4ForCausalLM"], "vocab_size": 64, "hidden_size": 128,
      "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 128, "q_lora_rank": 128, "o_groups": 2,
      "o_lora_rank": 128, "compress_ratios": [0], "num_hash_layers": 0, "num_nextn_predict_layers": 0,
      "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "quantization_config":
      {"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}, "torch_dtype": "bfloat16")";
  const std::uint64_t block = 128 * 128, matrices = 4 * 3,
                      others = 8 + 3;  // of attention, of the shared expert
  const std::uint64_t saved = matrices * (block + 4 - block / 32 * 17) + others * 3;
  EXPECT_EQ(bytes_of(sizes + "}") - bytes_of(sizes + R"(, "expert_dtype": "fp4"})"), saved);
  EXPECT_EQ(bytes_of(sizes + R"(, "expert_dtype": "fp8"})"), bytes_of(sizes + "}"));
}

// nvidia's NVFP4 releases of it: what "quantized_layers" names is NVFP4 (codes, a scale a 16, two F32), all else as it was,
// whatever "ignore" and "config_groups" say: they are of the mixture (quantize_to_nvfp4.py of ModelOpt).
TEST(WeightBytes, MixtureOverBlocksLeavesTheRestInBlocks) {
  const auto model = [](const char* more) {
    return std::string(
               R"({"architectures": ["DeepseekV4ForCausalLM"], "vocab_size": 64, "hidden_size": 128,
      "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 128, "q_lora_rank": 128, "o_groups": 2,
      "o_lora_rank": 128, "compress_ratios": [0, 0], "num_hash_layers": 0, "num_nextn_predict_layers": 0,
      "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "expert_dtype": "fp4",
      "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "fp8", "scale_fmt": "ue8m0",
      "weight_block_size": [128, 128])") +
           more + "}}";
  };
  const char* mixture =
      R"(, "quant_algo": "MIXED_PRECISION", "group_size": 16, "ignore": ["*.attn.*", "*.ffn.shared_experts.*"],
      "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
      "quantized_layers": {"layers.1.ffn.experts": {"quant_algo": "NVFP4", "group_size": 16}})";
  const std::uint64_t codes = 128 * 128 / 2, more_a_matrix = codes / 8 + 8 - codes / 16;
  EXPECT_EQ(bytes_of(model(mixture)) - bytes_of(model("")), 4 * 3 * more_a_matrix);
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
            256u * 512 / 2 + 256u * 512 / 64 * 4 + 16 * 4);
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
