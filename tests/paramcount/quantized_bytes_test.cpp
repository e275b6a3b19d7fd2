// Bytes of quantized weights from a config alone: which modules it means, and what is stored beside codes. By hand, from
// the layouts of GPTQModel, compressed-tensors 0.9 and 0.20, bitsandbytes and ModelOpt.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/model/weight_bytes.h"
#include "tests/support/described.h"

namespace assay {
namespace {

std::uint64_t bytes_of(const std::string& architecture, const std::string& keys,
                       const std::string& quantization) {
  const auto config = test::config_of(architecture, keys + R"(, "quantization_config": )" + quantization);
  return weight_bytes(describe(config), configured_format(config)).total;
}

// Two layers: q, k, v and o are squares of 128, the MLP's three matrices 128 × 256.
constexpr std::uint64_t kSquare = 128 * 128, kMlp = 128 * 256, kHead = 96 * 128;
constexpr std::uint64_t kLinears = 2 * (4 * kSquare + 3 * kMlp),
                        kPlain = 2 * (kLinears + 2 * kHead + 5 * 128);
std::uint64_t llama(const std::string& quantization, const std::string& dtype = "bfloat16") {
  return bytes_of("LlamaForCausalLM",
                  fmt::format(R"("vocab_size": 96, "hidden_size": 128, "intermediate_size": 256,
      "num_hidden_layers": 2, "num_attention_heads": 1, "num_key_value_heads": 1, "tie_word_embeddings": false,
      "torch_dtype": "{}")",
                              dtype),
                  quantization);
}

std::uint64_t gptq(std::uint64_t out,
                   std::uint64_t in) {  // codes, scales, zero points, the group of each input
  return out * in / 2 + in / 128 * out * 2 + in / 128 * out / 2 + in * 4;
}

TEST(QuantizedBytes, GptqTakesTheModulesItNames) {
  ASSERT_EQ(llama("null"), kPlain);
  const std::uint64_t rest = kPlain - 2 * 2 * (kSquare + kMlp);
  const std::uint64_t named = rest + 2 * (gptq(128, 128) + gptq(128, 256));
  const std::string head = R"({"quant_method": "gptq", "bits": 4, "group_size": 128, )";
  EXPECT_EQ(llama(head + R"("modules_in_block_to_quantize": [["self_attn.q_proj"], ["mlp.down_proj"]]})"),
            named);
  EXPECT_EQ(llama(head + R"("modules_in_block_to_quantize": ["self_attn.q_proj", "mlp.down_proj"]})"), named);
  EXPECT_THROW(llama(head + R"("modules_in_block_to_quantize": "self_attn.q_proj"})"), Error);
}

TEST(QuantizedBytes, GptqMayTakeTheHead) {
  const std::string head = R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": )";
  EXPECT_EQ(llama(head + "true}"), llama(head + "false}") - 2 * kHead + gptq(96, 128));
}

TEST(QuantizedBytes, IntegersWithoutSymmetryHaveZeroPoints) {
  const auto integers = [](const char* more) {
    return fmt::format(
        R"({{"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
        "config_groups": {{"group_0": {{"targets": ["Linear"], "weights": {{"num_bits": 4, "type": "int",
        "strategy": "group", "group_size": 32{}}}}}}}}})",
        more);
  };
  const auto stored = [](std::uint64_t zeros,
                         std::uint64_t inputs) {  // codes, scales, and a shape of 16 bytes
    const std::uint64_t linears = kLinears / 2 + kLinears / 32 * 2 + 14 * 16;
    return kPlain - 2 * kLinears + linears + zeros * kLinears / 32 / 2 + inputs * 2 * (6 * 128 + 256) * 4;
  };
  EXPECT_EQ(llama(integers("")), stored(0, 0));
  EXPECT_EQ(llama(integers(R"(, "symmetric": false)")), stored(1, 0));
  EXPECT_EQ(llama(integers(R"(, "actorder": "group")")), stored(0, 1));
}

// Half of the codes, and for each two bits of where it stands.
TEST(QuantizedBytes, Marlin24KeepsHalf) {
  EXPECT_EQ(llama(R"({"quant_method": "compressed-tensors", "format": "marlin-24", "ignore": ["lm_head"],
      "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int",
      "strategy": "group", "group_size": 128}}}})"),
            kPlain - 2 * kLinears + kLinears / 4 + kLinears / 8 + kLinears / 128 * 2);
}

TEST(QuantizedBytes, ScalesOfBlocksHaveATypeOfTheirOwn) {
  const std::uint64_t blocks = 2 * (4 + 3 * 2), codes = kPlain - kLinears;
  EXPECT_EQ(llama(R"({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"})"), codes + blocks * 4);
  EXPECT_EQ(
      llama(R"({"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"],
      "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float",
      "strategy": "block", "block_structure": [128, 128]}}}})"),
      codes + blocks * 2);
}

TEST(QuantizedBytes, BitsandbytesScalesMayBeCodes) {
  const auto stored = [](std::uint64_t matrices, std::uint64_t elements, bool nested) {
    const std::uint64_t scales = elements / 64;
    return elements / 2 + (nested ? scales + scales / 256 * 4 : scales * 4) + matrices * (nested ? 1088 : 64);
  };
  const std::string four = R"({"quant_method": "bitsandbytes", "load_in_4bit": true)";
  EXPECT_EQ(llama(four + "}"), kPlain - 2 * kLinears + stored(14, kLinears, false));
  // 192 scales of the head are no whole 256.
  EXPECT_EQ(llama(four + R"(, "bnb_4bit_use_double_quant": true, "llm_int8_skip_modules": null})"),
            kPlain - 2 * kLinears + stored(14, kLinears, true));
  EXPECT_EQ(llama(four + R"(, "bnb_4bit_use_double_quant": true, "llm_int8_skip_modules": ["visual"]})"),
            kPlain - 2 * kLinears - 2 * kHead + stored(14, kLinears, true) + stored(1, kHead, true) + 4);
}

TEST(QuantizedBytes, GroupsThatNameModulesLeaveTheOthers) {
  const auto scheme = [](const char* targets, const char* weights) {
    return fmt::format(R"({{"targets": [{}], "weights": {{{}}}}})", targets, weights);
  };
  const auto groups = [&](const std::string& all) {
    return R"({"quant_method": "compressed-tensors", "format": "mixed-precision", "ignore": ["lm_head"],
        "config_groups": {)" +
           all + "}}";
  };
  const char* eight = R"("num_bits": 8, "type": "float", "strategy": "channel")";
  const char* four = R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 32)";
  const std::uint64_t rows = 2 * (5 * 128 + 2 * 256), outs = 2 * kSquare;
  EXPECT_EQ(llama(groups(R"("group_0": )" + scheme(R"("re:.*o_proj")", eight))), kPlain - outs + 2 * 128 * 2);
  // Beside a class a name comes first.
  EXPECT_EQ(llama(groups(R"("group_0": )" + scheme(R"("Linear")", eight) + R"(, "group_1": )" +
                         scheme(R"("re:.*o_proj")", four))),
            kPlain - kLinears + (rows - 2 * 128) * 2 - outs / 2 + outs / 32 * 2 + 2 * 16);
}

TEST(QuantizedBytes, OnlyGptOssMeansExpertsAlone) {
  const std::string moe = R"("vocab_size": 96, "hidden_size": 128, "num_hidden_layers": 1, "num_experts": 4,
      "num_experts_per_tok": 1, "moe_intermediate_size": 64, "num_attention_heads": 1, "num_key_value_heads": 1,
      "head_dim": 128, "tie_word_embeddings": false, "torch_dtype": "bfloat16")";
  const std::uint64_t experts = 4 * 3 * 128 * 64, attention = 4 * kSquare;
  const auto bytes = [&](const std::string& q) { return bytes_of("Qwen3MoeForCausalLM", moe, q); };
  const std::uint64_t plain = bytes("null");
  const auto packed = [](std::uint64_t elements) { return elements / 2 + elements / 32; };
  EXPECT_EQ(bytes(R"({"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized",
      "ignore": ["lm_head", "re:.*mlp.gate$"], "config_groups": {"group_0": {"targets": ["Linear"],
      "weights": {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}}}})"),
            plain - 2 * (experts + attention) + packed(experts + attention));
  EXPECT_EQ(bytes(R"({"quant_method": "mxfp4"})"), plain - 2 * experts + packed(experts));
}

// Qwen2.5-VL-3B, whose Linear layers transformers 5.24 has on the meta device: 252 of the language model, 162 of the tower.
TEST(QuantizedBytes, TowersAreTakenWhereNothingSparesThem) {
  const auto bytes = [](const std::string& quantization) {
    return bytes_of("Qwen2_5_VLForConditionalGeneration",
                    R"("hidden_size": 2048, "intermediate_size": 11008, "num_attention_heads": 16,
        "num_hidden_layers": 36, "num_key_value_heads": 2, "tie_word_embeddings": true, "vocab_size": 151936,
        "torch_dtype": "bfloat16", "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420,
        "num_heads": 16, "out_hidden_size": 2048, "patch_size": 14, "temporal_patch_size": 2})",
                    quantization);
  };
  const auto four = [&](const char* spared) {
    return bytes(fmt::format(R"({{"quant_method": "bitsandbytes", "load_in_4bit": true,
        "bnb_4bit_use_double_quant": true, "llm_int8_skip_modules": {}}})",
                             spared));
  };
  EXPECT_EQ(four("null"), 2'402'509'952);
  EXPECT_EQ(four(R"(["lm_head", "visual"])"), 3'391'751'424);
  const auto eight = [&](const char* spared) {
    return bytes(fmt::format(R"({{"quant_method": "compressed-tensors", "format": "float-quantized",
        "ignore": ["lm_head"{}], "config_groups": {{"group_0": {{"targets": ["Linear"], "weights": {{"num_bits": 8,
        "type": "float", "strategy": "channel"}}}}}}}})",
                             spared));
  };
  EXPECT_EQ(eight(""), 4'070'974'976);
  EXPECT_EQ(eight(R"(, "re:.*visual.*")"), 4'736'778'240);
  EXPECT_EQ(eight(R"(, "model.visual.blocks", "model.visual.merger")"),
            4'736'778'240);  // modules, not tensors
}

// Where text_config says it, it is said of the language model.
TEST(QuantizedBytes, WhatIsSaidOfTheTextSparesTowers) {
  const auto bytes = [](const char* quantization) {
    return bytes_of(
        "KimiK25ForConditionalGeneration",
        fmt::format(R"("text_config": {{"num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 8,
        "vocab_size": 64, "torch_dtype": "bfloat16"{}}}, "vision_config": {{"vt_hidden_size": 96,
        "vt_num_attention_heads": 12, "vt_num_hidden_layers": 1, "vt_intermediate_size": 64}})",
                    quantization),
        "null");
  };
  const char* rows =
      R"(, "quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized",
      "ignore": ["re:.*"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8,
      "type": "float", "strategy": "channel"}}}})";
  const char* towers =
      R"(, "quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized",
      "ignore": ["re:language_model.*"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
      "num_bits": 8, "type": "float", "strategy": "channel"}}}})";
  EXPECT_EQ(bytes(rows), bytes(""));
  EXPECT_EQ(bytes(towers), bytes(""));
}

TEST(QuantizedBytes, TypesInTorchsWords) {
  EXPECT_EQ(llama("null", "torch.float32"), 2 * kPlain);
  EXPECT_EQ(llama("null", "float64"), 4 * kPlain);
  EXPECT_EQ(llama("null", "float8_e4m3fn"), kPlain / 2);
  const auto config = test::config_of("LlamaForCausalLM", R"("torch_dtype": "posit16")");
  EXPECT_EQ(configured_format(config).title, "BF16; what the dtype \"posit16\" is, is not known");
}

TEST(QuantizedBytes, NoIntegersHaveNoBits) {
  EXPECT_THROW(llama(R"({"quant_method": "awq", "bits": 0, "group_size": 128})"), Error);
  EXPECT_THROW(llama(R"({"quant_method": "awq", "bits": 12, "group_size": 128})"), Error);
  EXPECT_THROW(
      llama(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
      "weights": {"num_bits": 0, "type": "int"}}}})"),
      Error);
}

}  // namespace
}  // namespace assay
