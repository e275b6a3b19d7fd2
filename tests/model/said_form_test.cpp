// What quantization_config says of the stored form against what the headers show: the same little model in every form
// of the wild, under configs that name it rightly and wrongly.
#include "core/model/said_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/formats/json.h"
#include "core/model/reconcile.h"
#include "tests/support/checkpoints.h"

namespace assay {
namespace {

using enum ElementType;
using test::StoredTensor;
using Tensors = std::vector<StoredTensor>;

constexpr std::uint64_t kHidden = 256, kMlp = 384;

// How the matrix `module`.weight [rows, columns] is stored.
using Store =
    std::function<void(Tensors&, const std::string& module, std::uint64_t rows, std::uint64_t columns)>;

void plain(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".weight", BF16, {rows, columns}});
}
void nvfp4(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".weight", U8, {rows, columns / 2}});
  into.push_back({module + ".weight_scale", F8_E4M3, {rows, columns / 16}});
  into.push_back({module + ".weight_scale_2", F32, {}});
}
void nvfp4_packed(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".weight_packed", U8, {rows, columns / 2}});
  into.push_back({module + ".weight_scale", F8_E4M3, {rows, columns / 16}});
  into.push_back({module + ".weight_global_scale", F32, {1}});
}
void mxfp4(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".weight_packed", U8, {rows, columns / 2}});
  into.push_back({module + ".weight_scale", U8, {rows, columns / 32}});
}
void fp8_tensor(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".weight", F8_E4M3, {rows, columns}});
  into.push_back({module + ".weight_scale", F32, {}});
}
void fp8_rows(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".weight", F8_E4M3, {rows, columns}});
  into.push_back({module + ".weight_scale", BF16, {rows, 1}});
}
void fp8_blocks(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".weight", F8_E4M3, {rows, columns}});
  into.push_back({module + ".weight_scale_inv", F32, {rows / 128, columns / 128}});
}
void gptq(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".qweight", I32, {columns / 8, rows}});
  into.push_back({module + ".qzeros", I32, {columns / 32, rows / 8}});
  into.push_back({module + ".scales", F16, {columns / 32, rows}});
  into.push_back({module + ".g_idx", I32, {columns}});
}
void awq(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".qweight", I32, {columns, rows / 8}});
  into.push_back({module + ".qzeros", I32, {columns / 32, rows / 8}});
  into.push_back({module + ".scales", F16, {columns / 32, rows}});
}
void int4(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".weight_packed", I32, {rows, columns / 8}});
  into.push_back({module + ".weight_scale", BF16, {rows, columns / 32}});
}
void int4_with_zeros(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  int4(into, module, rows, columns);
  into.push_back({module + ".weight_zero_point", I32, {rows / 8, columns / 32}});
}
void mlx(Tensors& into, const std::string& module, std::uint64_t rows, std::uint64_t columns) {
  into.push_back({module + ".weight", U32, {rows, columns / 8}});
  into.push_back({module + ".scales", BF16, {rows, columns / 32}});
  into.push_back({module + ".biases", BF16, {rows, columns / 32}});
}

// A Llama of two layers; `other`: how layer 1 is stored, where it differs.
Tensors llama(const Store& store, const Store& other = nullptr) {
  Tensors tensors = {{"model.embed_tokens.weight", BF16, {128, kHidden}},
                     {"model.norm.weight", BF16, {kHidden}},
                     {"lm_head.weight", BF16, {128, kHidden}}};
  for (int i = 0; i < 2; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    const Store& how = i == 1 && other ? other : store;
    tensors.push_back({layer + "input_layernorm.weight", BF16, {kHidden}});
    tensors.push_back({layer + "post_attention_layernorm.weight", BF16, {kHidden}});
    for (const char* part : {"q", "k", "v", "o"})
      how(tensors, layer + "self_attn." + part + "_proj", kHidden, kHidden);
    for (const char* part : {"gate", "up"}) how(tensors, layer + "mlp." + part + "_proj", kMlp, kHidden);
    how(tensors, layer + "mlp.down_proj", kHidden, kMlp);
  }
  return tensors;
}

ModelConfig config_with(const std::string& quantization) {
  const std::string text =
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128,
    "hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 4, "tie_word_embeddings": false, "quantization_config": )" +
      quantization + "}";
  return ModelConfig::from_json(parse_json(text, "config.json"), "config.json");
}

Findings findings_of(const Tensors& tensors, const std::string& quantization) {
  const ModelConfig config = config_with(quantization);
  return reconcile(describe(config), config, test::make_checkpoint(tensors)).findings;
}

std::string text_of(const Findings& findings) {
  std::string text;
  for (const Finding& f : findings) text += f.code + " " + f.tensor + ": " + f.message + "\n";
  return text;
}

std::string compressed(const std::string& format, const std::string& weights) {
  return R"({"quant_method": "compressed-tensors", "format": ")" + format +
         R"(", "config_groups": {"group_0": {"targets": ["Linear"], "weights": )" + weights +
         R"(}}, "ignore": ["lm_head"]})";
}

const std::string kModelopt = R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16})";
const std::string kModelopt32 = R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 32})";
const std::string kModeloptFp8 = R"({"quant_method": "modelopt", "quant_algo": "FP8"})";
const std::string kFp8 = R"({"quant_method": "fp8", "activation_scheme": "dynamic"})";
const std::string kFp8Blocks =
    R"({"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]})";
std::string words(const std::string& method, int bits, int group) {
  return R"({"quant_method": ")" + method + R"(", "bits": )" + std::to_string(bits) + R"(, "group_size": )" +
         std::to_string(group) + "}";
}
std::string compressed_floats(const std::string& format, const std::string& strategy, int group) {
  return compressed(format, R"({"type": "float", "num_bits": 4, "strategy": ")" + strategy +
                                R"(", "group_size": )" + std::to_string(group) + "}");
}
std::string compressed_ints(int bits, int group, bool symmetric) {
  return compressed("pack-quantized", R"({"type": "int", "strategy": "group", "num_bits": )" +
                                          std::to_string(bits) + R"(, "group_size": )" +
                                          std::to_string(group) + R"(, "symmetric": )" +
                                          (symmetric ? "true}" : "false}"));
}
const std::string kFp8Rows =
    compressed("float-quantized", R"({"type": "float", "num_bits": 8, "strategy": "channel"})");
const std::string kNvfp4 = compressed_floats("nvfp4-pack-quantized", "tensor_group", 16);

TEST(SaidForm, WhatConfigsSayRightlyIsNoFinding) {
  const std::vector<std::pair<Store, std::string>> sound = {
      {nvfp4, kModelopt},
      {nvfp4_packed, kNvfp4},
      {mxfp4, compressed_floats("mxfp4-pack-quantized", "group", 32)},
      {fp8_tensor, kFp8},
      {fp8_tensor, kModeloptFp8},
      {fp8_rows, kFp8Rows},
      {fp8_blocks, kFp8Blocks},
      {fp8_blocks, kFp8},
      {gptq, words("gptq", 4, 32)},
      {awq, words("awq", 4, 32)},
      {int4, compressed_ints(4, 32, true)},
      {int4_with_zeros, compressed_ints(4, 32, false)},
      {mlx, R"({"bits": 4, "group_size": 32})"},
  };
  for (const auto& [store, config] : sound)
    EXPECT_EQ(text_of(findings_of(llama(store), config)), "") << config;
}

struct Wrong {
  Store store;
  std::string config, said, held;
};

// One line for fourteen matrices: what is said, what is held.
TEST(SaidForm, OtherFormsAreOneErrorWithTheirCount) {
  const std::vector<Wrong> wrong = {
      {nvfp4, kModelopt32, "NVFP4 in groups of 32", "NVFP4 in groups of 16"},
      {nvfp4_packed, compressed_floats("nvfp4-pack-quantized", "tensor_group", 32), "NVFP4 in groups of 32",
       "NVFP4 in groups of 16"},
      {nvfp4, kModeloptFp8, "FP8 with a scale a matrix", "NVFP4 in groups of 16"},
      {nvfp4_packed, kFp8Rows, "FP8 with a scale a row", "NVFP4 in groups of 16"},
      {nvfp4_packed, compressed_ints(4, 16, true), "INT4 in groups of 16", "NVFP4 in groups of 16"},
      {mxfp4, kNvfp4, "NVFP4 in groups of 16", "MXFP4 in groups of 32"},
      {fp8_tensor, kFp8Blocks, "FP8 in blocks of 128x128", "FP8 with a scale a matrix"},
      {fp8_rows, kFp8Blocks, "FP8 in blocks of 128x128", "FP8 with a scale a row"},
      {fp8_rows, kFp8, "FP8 with a scale a matrix", "FP8 with a scale a row"},
      {gptq, words("gptq", 8, 32), "GPTQ INT8 in groups of 32", "GPTQ INT4 in groups of 32"},
      {gptq, words("gptq", 4, -1), "GPTQ INT4 with a scale a row", "GPTQ INT4 in groups of 32"},
      {gptq, words("awq", 4, 32), "awq", "integers packed along the inputs, as GPTQ does"},
      {awq, words("awq", 4, -1), "AWQ INT4 with a scale a row", "AWQ INT4 in groups of 32"},
      {awq, words("awq", 8, 32), "8 bits", "AWQ's integers of 4 bits"},
      {awq, words("gptq", 4, 32), "GPTQ INT4 in groups of 32", "AWQ INT4 in groups of 32"},
      {int4, compressed_ints(4, 32, false), "INT4 in groups of 32, with zero points",
       "INT4 in groups of 32, symmetric"},
      {int4_with_zeros, compressed_ints(4, 32, true), "INT4 in groups of 32, symmetric",
       "INT4 in groups of 32, with zero points"},
      {mlx, R"({"bits": 4, "group_size": 64})", "4 bits in groups of 64, 256 bits under a scale",
       "128 bits under a scale"},
      {mlx, R"({"bits": 8, "group_size": 32})", "8 bits in groups of 32, 256 bits under a scale",
       "128 bits under a scale"},
  };
  for (const Wrong& w : wrong) {
    const Findings findings = findings_of(llama(w.store), w.config);
    ASSERT_EQ(findings.size(), 1u) << w.config << "\n" << text_of(findings);
    EXPECT_EQ(findings[0].severity, Severity::error);
    EXPECT_EQ(findings[0].code, "stored.form_differs") << findings[0].message;
    EXPECT_TRUE(findings[0].tensor.starts_with("model.layers.0.self_attn.q_proj.")) << findings[0].tensor;
    EXPECT_NE(findings[0].message.find("says " + w.said), std::string::npos) << findings[0].message;
    EXPECT_NE(findings[0].message.find("the file holds " + w.held), std::string::npos) << findings[0].message;
    EXPECT_TRUE(findings[0].message.ends_with("13 other tensors are alike")) << findings[0].message;
    EXPECT_FALSE(findings[0].remedy.empty());
  }
}

// A config of 8 bits over words of 4, told by weight_shape, whose bytes no header has: judged without them.
TEST(SaidForm, BitsOfCompressedTensorsCount) {
  const Checkpoint checkpoint = test::make_checkpoint(llama(int4));
  const auto right = config_with(compressed_ints(4, 32, true)).quantization();
  const auto wrong = config_with(compressed_ints(8, 32, true)).quantization();
  const StoredTensors stored = find_stored(checkpoint, right);
  EXPECT_TRUE(hold_against_config(checkpoint, stored, *right).empty());
  const Findings findings = hold_against_config(checkpoint, stored, *wrong);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].message.find("INT8 in groups of 32"), std::string::npos) << findings[0].message;
}

TEST(SaidForm, ModulesWithBitsOfTheirOwnAreBelieved) {
  const std::string own = R"({"quant_method": "gptq", "bits": 8, "group_size": 32,
    "dynamic": {"+:.*": {"bits": 4, "group_size": 32}}})";
  EXPECT_EQ(text_of(findings_of(llama(gptq), own)), "");
}

TEST(SaidForm, Nvfp4WithoutItsGlobalScaleIsAnError) {
  Tensors one = llama(nvfp4), none = one, packed = llama(nvfp4_packed);
  std::erase_if(one, [](const auto& t) { return t.name == "model.layers.1.mlp.down_proj.weight_scale_2"; });
  std::erase_if(none, [](const auto& t) { return t.name.ends_with("weight_scale_2"); });
  std::erase_if(packed, [](const auto& t) { return t.name.ends_with("weight_global_scale"); });
  const Findings of_one = findings_of(one, kModelopt), of_none = findings_of(none, kModelopt),
                 of_packed = findings_of(packed, kNvfp4);
  for (const Findings* findings : {&of_one, &of_none, &of_packed}) {
    ASSERT_EQ(findings->size(), 1u) << text_of(*findings);
    EXPECT_EQ(findings->front().code, "stored.scale_missing");
    EXPECT_EQ(findings->front().severity, Severity::error);
  }
  EXPECT_EQ(of_one[0].tensor, "model.layers.1.mlp.down_proj.weight");
  EXPECT_NE(of_none[0].message.find("13 other tensors"), std::string::npos) << of_none[0].message;
  EXPECT_NE(of_packed[0].message.find("weight_global_scale"), std::string::npos) << of_packed[0].message;
}

std::string with_ignored(const std::string& entries) {
  return R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "exclude_modules": [)" +
         entries + "]}";
}

TEST(SaidForm, AnExemptModuleThatIsPackedIsAnError) {
  const Findings findings = findings_of(llama(nvfp4), with_ignored(R"("lm_head", "model.layers.1*")"));
  ASSERT_EQ(findings.size(), 1u) << text_of(findings);
  EXPECT_EQ(findings[0].code, "stored.exempt_quantized");
  EXPECT_EQ(findings[0].severity, Severity::error);
  EXPECT_EQ(findings[0].tensor, "model.layers.1.self_attn.q_proj.weight");
  EXPECT_NE(findings[0].message.find("6 other tensors"), std::string::npos) << findings[0].message;
  // In the original's form: a warning.
  const Findings other = findings_of(llama(nvfp4, fp8_tensor), with_ignored(R"("model.layers.1*")"));
  ASSERT_EQ(other.size(), 1u) << text_of(other);
  EXPECT_EQ(other[0].severity, Severity::warning);
}

TEST(SaidForm, APlainMatrixThatTheConfigNamesIsAnError) {
  const Findings findings = findings_of(llama(nvfp4, plain), with_ignored(R"("lm_head")"));
  ASSERT_EQ(findings.size(), 1u) << text_of(findings);
  EXPECT_EQ(findings[0].code, "model.plain_undeclared");
  EXPECT_EQ(findings[0].tensor, "model.layers.1.self_attn.q_proj.weight");
  EXPECT_NE(findings[0].message.find("6 other tensors"), std::string::npos) << findings[0].message;
}

TEST(SaidForm, WhatReleasesLeavePlainIsNoFinding) {
  const Tensors second_plain = llama(nvfp4, plain);
  for (const char* named : {R"("model.layers.1*")", R"("language_model.model.layers.1")",
                            R"("re:.*layers\\.1\\..*")", R"("layers.1.self_attn", "layers.1.mlp")",
                            R"("model.layers.1.self_attn.qkv_proj", "model.layers.1.self_attn.o_proj",
                               "model.layers.1.mlp.gate_up_proj", "model.layers.1.mlp.down_proj")"})
    EXPECT_EQ(text_of(findings_of(second_plain, with_ignored(named))), "") << named;
  // Of GPTQ and AWQ engines look at the headers.
  EXPECT_EQ(text_of(findings_of(llama(awq, plain), words("awq", 4, 32))), "");
  EXPECT_EQ(text_of(findings_of(llama(gptq, plain), words("gptq", 4, 32))), "");
  // Attention that is plain in every layer: what a tool did not take for a Linear.
  const Store experts_alone = [](Tensors& into, const std::string& module, std::uint64_t rows,
                                 std::uint64_t columns) {
    (module.find("mlp") == std::string::npos ? plain : nvfp4)(into, module, rows, columns);
  };
  EXPECT_EQ(text_of(findings_of(llama(experts_alone), with_ignored(""))), "");
  // Several algorithms name their modules.
  EXPECT_EQ(text_of(findings_of(second_plain, R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
      "quantized_layers": {"model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4", "group_size": 16}}})")),
            "");
}

// A method or a scheme that nobody has described here says nothing.
TEST(SaidForm, UnknownWordsSayNothing) {
  for (const char* text :
       {R"({"quant_method": "modelopt", "quant_algo": "NEXT"})", R"({"quant_method": "quark"})",
        R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights":
                              {"type": "float", "num_bits": 3}}}})"})
    EXPECT_TRUE(said_forms(*config_with(text).quantization()).empty()) << text;
}

}  // namespace
}  // namespace assay
