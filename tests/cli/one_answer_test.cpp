// One checkpoint, one answer: odd checkpoints × commands. Every row says what the stored form is worth, and
// every command that opens the checkpoint must say the same:
//
//   - taken: no command objects
//   - told: every command takes it; verify, paramcount and check warn
//   - declared: decodable by its names, but config.json says otherwise or nothing. An error of paramcount's,
//     which speaks for loaders; a warning of verify's; run and convert go by the names.
//   - unlike: stored well, but not the model of config.json: paramcount, run and convert refuse
//   - unknown: no form that is known here: a warning, and nobody decodes it
//   - refused: its values cannot be known: an error of paramcount's, a warning of verify's; run and convert
//     refuse
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "convert/plan.h"
#include "core/model/stored_names.h"
#include "core/numeric/element_type.h"
#include "core/system/error.h"
#include "paramcount/paramcount.h"
#include "refimpl/models/weights.h"
#include "tests/support/support.h"
#include "verify/verify.h"

namespace assay::test {
namespace {

using enum ElementType;
using nlohmann::json;
using Shape = std::vector<std::uint64_t>;

enum class Answer { taken, told, declared, unlike, unknown, refused };

struct Parts {
  json config;
  std::map<std::string, std::pair<ElementType, Shape>> tensors;

  void quantization(const char* text) { config["quantization_config"] = json::parse(text); }
  void up(const std::string& part, ElementType type, const Shape& shape) {
    tensors["model.layers.0.mlp.up_proj." + part] = {type, shape};
  }
  // The matrix of 384 × 256 in one-byte codes, with scales under `suffix`.
  void codes(ElementType type, const std::string& suffix, const Shape& grid, ElementType scales = F32) {
    up("weight", type, {384, 256});
    if (!suffix.empty()) up(suffix, scales, grid);
  }
  void drop(const std::string& name) { tensors.erase(name); }
};

// A Llama of one layer, all of it BF16.
Parts base() {
  Parts parts;
  parts.config =
      json::parse(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128,
    "hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 4, "tie_word_embeddings": false, "rms_norm_eps": 1e-5, "max_position_embeddings": 64,
    "hidden_act": "silu", "rope_theta": 10000.0, "torch_dtype": "bfloat16"})");
  auto& t = parts.tensors;
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) t[name] = {BF16, {128, 256}};
  t["model.norm.weight"] = {BF16, {256}};
  const std::string layer = "model.layers.0.";
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
    t[layer + norm + ".weight"] = {BF16, {256}};
  for (const char* m : {"q", "k", "v", "o"})
    t[layer + "self_attn." + m + "_proj.weight"] = {BF16, {256, 256}};
  t[layer + "mlp.gate_proj.weight"] = t[layer + "mlp.up_proj.weight"] = {BF16, {384, 256}};
  t[layer + "mlp.down_proj.weight"] = {BF16, {256, 384}};
  return parts;
}

void write_parts(const Parts& parts, const fs::path& folder) {
  json header = json::object();
  std::string buffer;
  for (const auto& [name, tensor] : parts.tensors) {
    const auto& [type, shape] = tensor;
    std::string bytes(storage_bytes(type, element_count(shape).value()).value(), '\0');
    if (name.ends_with("weight_shape")) {
      const std::int64_t sizes[] = {384, 256};
      bytes.assign(reinterpret_cast<const char*>(sizes), sizeof sizes);
    }
    header[name] = {{"dtype", std::string(info(type).name)},
                    {"shape", shape},
                    {"data_offsets", {buffer.size(), buffer.size() + bytes.size()}}};
    buffer += bytes;
  }
  write_file(folder / "model.safetensors", safetensors_bytes(header.dump(), buffer));
  write_file(folder / "config.json", parts.config.dump());
}

struct Odd {
  const char* name;
  Answer answer;
  std::function<void(Parts&)> edit;
};

constexpr const char* kFp8 = R"({"quant_method": "fp8"})";
constexpr const char* kFp8By128 = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
constexpr const char* kFp8By64 = R"({"quant_method": "fp8", "weight_block_size": [64, 64]})";
constexpr const char* kModelOptFp8Rows =
    R"({"quant_method": "modelopt", "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"})";
constexpr const char* kModelOptFp8 = R"({"quant_method": "modelopt", "quant_algo": "FP8"})";
constexpr const char* kNvfp4 = R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})";
constexpr const char* kGptq = R"({"quant_method": "gptq", "bits": 4, "group_size": 128})";
constexpr const char* kAwq = R"({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"})";
constexpr const char* kPacked =
    R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {"targets":
    ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}}}})";

void gptq(Parts& p, std::uint64_t groups) {
  p.drop("model.layers.0.mlp.up_proj.weight");
  p.up("qweight", I32, {32, 384});
  p.up("qzeros", I32, {groups, 48});
  p.up("scales", F16, {groups, 384});
}
void awq(Parts& p, std::uint64_t groups) {
  p.drop("model.layers.0.mlp.up_proj.weight");
  p.up("qweight", I32, {256, 48});
  p.up("qzeros", I32, {groups, 48});
  p.up("scales", F16, {groups, 384});
}
void packed(Parts& p, std::uint64_t groups) {
  p.drop("model.layers.0.mlp.up_proj.weight");
  p.up("weight_packed", I32, {384, 32});
  p.up("weight_scale", BF16, {384, groups});
  p.up("weight_shape", I64, {2});
}
void nvfp4(Parts& p, std::uint64_t columns) {
  p.quantization(kNvfp4);
  p.up("weight", U8, {384, 128});
  p.up("weight_scale", F8_E4M3, {384, columns});
  p.up("weight_scale_2", F32, {});
}
void mlx(Parts& p, std::uint64_t group) {
  p.config["quantization"] = {{"group_size", group}, {"bits", 4}};
  p.up("weight", U32, {384, 32});
  p.up("scales", F16, {384, 4});
  p.up("biases", F16, {384, 4});
}

std::vector<Odd> all_odd() {
  using P = Parts&;
  const std::string up = "model.layers.0.mlp.up_proj.weight";
  return {
      {"plain", Answer::taken, [](P) {}},
      {"f16_matrix", Answer::taken,
       [](P p) {
         p.up("weight", F16, {384, 256});
       }},
      {"f32_matrix", Answer::taken,
       [](P p) {
         p.up("weight", F32, {384, 256});
       }},
      {"fp8_128_named", Answer::taken,
       [](P p) {
         p.quantization(kFp8By128), p.codes(F8_E4M3, "weight_scale_inv", {3, 2});
       }},
      {"fp8_128_silent", Answer::taken,
       [](P p) {
         p.quantization(kFp8), p.codes(F8_E4M3, "weight_scale_inv", {3, 2});
       }},
      {"fp8_64_silent", Answer::told,
       [](P p) {
         p.quantization(kFp8), p.codes(F8_E4M3, "weight_scale_inv", {6, 4});
       }},
      {"fp8_32_silent", Answer::told,
       [](P p) {
         p.quantization(kFp8), p.codes(F8_E4M3, "weight_scale_inv", {12, 8});
       }},
      {"fp8_16_silent", Answer::told,
       [](P p) {
         p.quantization(kFp8), p.codes(F8_E4M3, "weight_scale_inv", {24, 16});
       }},
      {"fp8_256_silent", Answer::told,
       [](P p) {
         p.quantization(kFp8), p.codes(F8_E4M3, "weight_scale_inv", {2, 1});
       }},
      {"fp8_64_named", Answer::taken,
       [](P p) {
         p.quantization(kFp8By64), p.codes(F8_E4M3, "weight_scale_inv", {6, 4});
       }},
      {"fp8_64_under_128", Answer::refused,
       [](P p) {
         p.quantization(kFp8By128), p.codes(F8_E4M3, "weight_scale_inv", {6, 4});
       }},
      {"fp8_128_under_64", Answer::refused,
       [](P p) {
         p.quantization(kFp8By64), p.codes(F8_E4M3, "weight_scale_inv", {3, 2});
       }},
      {"fp8_grid_turned", Answer::refused,
       [](P p) {
         p.quantization(kFp8By64), p.codes(F8_E4M3, "weight_scale_inv", {4, 6});
       }},
      {"fp8_a_row_too_many", Answer::refused,
       [](P p) {
         p.quantization(kFp8By64), p.codes(F8_E4M3, "weight_scale_inv", {7, 4});
       }},
      {"fp8_no_grid", Answer::refused,
       [](P p) {
         p.quantization(kFp8), p.codes(F8_E4M3, "weight_scale_inv", {5, 3});
       }},
      {"fp8_one_scale_where_blocks_are_named", Answer::refused,
       [](P p) {
         p.quantization(kFp8By128), p.codes(F8_E4M3, "weight_scale_inv", {1, 1});
       }},
      {"fp8_no_scale", Answer::refused, [](P p) { p.quantization(kFp8By128), p.codes(F8_E4M3, "", {}); }},
      {"fp8_e5m2", Answer::taken,
       [](P p) {
         p.quantization(kFp8By128), p.codes(F8_E5M2, "weight_scale_inv", {3, 2});
       }},
      {"fp8_undeclared", Answer::declared,
       [](P p) {
         p.codes(F8_E4M3, "weight_scale_inv", {3, 2});
       }},
      {"fp8_tensor", Answer::taken,
       [](P p) { p.quantization(kModelOptFp8), p.codes(F8_E4M3, "weight_scale", {}); }},
      {"fp8_tensor_of_one", Answer::taken,
       [](P p) { p.quantization(kModelOptFp8), p.codes(F8_E4M3, "weight_scale", {1}); }},
      {"fp8_tensor_with_input_scale", Answer::taken,
       [](P p) {
         p.quantization(kModelOptFp8), p.codes(F8_E4M3, "weight_scale", {});
         p.up("input_scale", F32, {});
       }},
      {"fp8_channel", Answer::taken,
       [](P p) {
         p.quantization(kModelOptFp8Rows), p.codes(F8_E4M3, "weight_scale", {384, 1});
       }},
      {"fp8_channel_flat", Answer::taken,
       [](P p) { p.quantization(kModelOptFp8Rows), p.codes(F8_E4M3, "weight_scale", {384}); }},
      {"fp8_channel_where_one_scale_is_named", Answer::declared,
       [](P p) {
         p.quantization(kModelOptFp8), p.codes(F8_E4M3, "weight_scale", {384, 1});
       }},
      {"fp8_channel_turned", Answer::refused,
       [](P p) {
         p.quantization(kModelOptFp8), p.codes(F8_E4M3, "weight_scale", {1, 384});
       }},
      {"fp8_scale_of_integers", Answer::refused,
       [](P p) {
         p.quantization(kModelOptFp8), p.codes(F8_E4M3, "weight_scale", {384, 1}, I32);
       }},
      {"fp8_two_scales", Answer::unknown,
       [](P p) {
         p.quantization(kFp8By128), p.codes(F8_E4M3, "weight_scale_inv", {3, 2});
         p.up("weight_scale", F32, {3, 2});
       }},
      {"fp8_norm", Answer::told,
       [](P p) {
         p.quantization(kModelOptFp8);
         p.codes(F8_E4M3, "weight_scale", {});
         p.tensors["model.norm.weight"] = {F8_E4M3, {256}};
         p.tensors["model.norm.weight_scale"] = {F32, {}};
       }},
      {"fp8_embedding", Answer::told,
       [](P p) {
         p.quantization(kModelOptFp8);
         p.tensors["model.embed_tokens.weight"] = {F8_E4M3, {128, 256}};
         p.tensors["model.embed_tokens.weight_scale"] = {F32, {}};
       }},
      {"mxfp8", Answer::taken,
       [](P p) {
         p.quantization(kFp8), p.codes(F8_E4M3, "weight_scale", {384, 8}, U8);
       }},
      {"int8_channel_undeclared", Answer::declared,
       [](P p) {
         p.codes(I8, "weight_scale", {384, 1});
       }},
      {"int8_channel", Answer::taken,
       [](P p) {
         p.quantization(R"({"quant_method": "w8a8_int8"})"), p.codes(I8, "weight_scale", {384, 1});
       }},
      {"int8_blocks", Answer::taken,
       [](P p) {
         p.quantization(R"({"quant_method": "blockwise_int8", "weight_block_size": [128, 128]})");
         p.codes(I8, "weight_scale_inv", {3, 2});
       }},
      {"int8_no_scale", Answer::refused,
       [](P p) { p.quantization(R"({"quant_method": "w8a8_int8"})"), p.codes(I8, "", {}); }},
      {"bitsandbytes_int8", Answer::taken,
       [](P p) {
         p.quantization(R"({"quant_method": "bitsandbytes", "load_in_8bit": true})");
         p.codes(I8, "SCB", {384});
       }},
      {"nvfp4", Answer::taken, [](P p) { nvfp4(p, 16); }},
      {"nvfp4_by_32", Answer::refused, [](P p) { nvfp4(p, 8); }},
      {"gptq", Answer::taken, [](P p) { p.quantization(kGptq), gptq(p, 2); }},
      {"gptq_64_under_128", Answer::refused, [](P p) { p.quantization(kGptq), gptq(p, 4); }},
      {"gptq_undeclared", Answer::refused, [](P p) { gptq(p, 2); }},
      {"awq", Answer::taken, [](P p) { p.quantization(kAwq), awq(p, 2); }},
      {"awq_64_under_128", Answer::refused, [](P p) { p.quantization(kAwq), awq(p, 4); }},
      {"int4_packed", Answer::taken, [](P p) { p.quantization(kPacked), packed(p, 2); }},
      {"int4_packed_64_under_128", Answer::refused, [](P p) { p.quantization(kPacked), packed(p, 4); }},
      {"int4_packed_without_scales", Answer::refused,
       [](P p) {
         p.quantization(kPacked), packed(p, 2);
         p.drop("model.layers.0.mlp.up_proj.weight_scale");
       }},
      {"mlx", Answer::taken, [](P p) { mlx(p, 64); }},
      {"scale_of_a_float", Answer::refused,
       [](P p) {
         p.quantization(kFp8By128), p.codes(BF16, "weight_scale_inv", {3, 2});
       }},
      {"scale_of_nothing", Answer::refused,
       [up](P p) {
         p.quantization(kFp8By128), p.codes(F8_E4M3, "weight_scale_inv", {3, 2}), p.drop(up);
       }},
      {"stale_declaration", Answer::declared, [](P p) { p.quantization(kFp8By128); }},
      {"unknown_method", Answer::unknown,
       [](P p) {
         p.quantization(R"({"quant_method": "quanto-next"})"), p.codes(F8_E4M3, "weight_scale", {384, 1});
       }},
      {"missing_tensor", Answer::unlike, [up](P p) { p.drop(up); }},
      {"other_shape", Answer::unlike,
       [](P p) {
         p.up("weight", BF16, {256, 384});
       }},
      {"integer_weight", Answer::unlike,
       [](P p) {
         p.up("weight", I64, {384, 256});
       }},
      {"extra_tensor", Answer::told,
       [](P p) {
         p.tensors["model.layers.0.mlp.router.weight"] = {BF16, {8, 256}};
       }},
      {"tied_and_stored_again", Answer::taken, [](P p) { p.config["tie_word_embeddings"] = true; }},
      {"another_width", Answer::unlike, [](P p) { p.config["intermediate_size"] = 512; }},
  };
}

class OneAnswer : public testing::TestWithParam<Odd> {};
INSTANTIATE_TEST_SUITE_P(Odd, OneAnswer, testing::ValuesIn(all_odd()),
                         [](const auto& test) { return std::string(test.param.name); });

// Messages of a command, each with its severity; a thrown input error is one of them.
struct Said {
  bool errors = false, warnings = false, refuses = false;
  std::string text;

  void take(const Findings& findings) {
    for (const Finding& f : findings) {
      errors |= f.severity == Severity::error;
      warnings |= f.severity == Severity::warning;
      text += "  " + f.code + " " + f.tensor + ": " + f.message + "\n";
    }
  }
};

Said attempt(const std::function<Findings()>& work) {
  Said said;
  try {
    said.take(work());
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::internal) << error.line();
    said.refuses = true;
    said.text += "  " + error.line() + "\n";
  }
  return said;
}

Said by_verify(const fs::path& folder) {
  return attempt([&] {
    VerifyOptions options;
    options.quick = true;
    VerifyObserver silent;
    Findings all = verify(folder, options, silent).findings;
    std::erase_if(all,
                  [](const Finding& f) { return f.code.starts_with("git") || f.severity == Severity::note; });
    return all;
  });
}

Said by_paramcount(const fs::path& folder) {
  return attempt([&] { return load_model(folder, 1).findings; });
}

Said by_run(const fs::path& folder) {
  return attempt([&] {
    const Weights weights(folder, 1);
    return Findings();
  });
}

Said by_convert(const fs::path& folder) {
  return attempt([&] {
    ConvertOptions options;
    options.to = "f32";
    Findings all = make_plan(folder, options).findings;
    std::erase_if(all, [](const Finding& f) { return f.severity != Severity::error; });
    return all;
  });
}

TEST_P(OneAnswer, OfEveryCommand) {
  const Odd& odd = GetParam();
  TempDir dir(memory_folder());
  Parts parts = base();
  odd.edit(parts);
  write_parts(parts, dir.path());
  const Said v = by_verify(dir.path()), p = by_paramcount(dir.path()), r = by_run(dir.path()),
             c = by_convert(dir.path());
  const auto is = [&](std::initializer_list<Answer> answers) {
    return std::find(answers.begin(), answers.end(), odd.answer) != answers.end();
  };
  const std::string all =
      "verify:\n" + v.text + "paramcount:\n" + p.text + "run:\n" + r.text + "convert:\n" + c.text;
  EXPECT_FALSE(v.errors || v.refuses) << "what config.json says is a warning to verify\n" << all;
  EXPECT_EQ(v.warnings, !is({Answer::taken})) << all;
  EXPECT_EQ(p.errors, is({Answer::declared, Answer::unlike, Answer::refused})) << all;
  EXPECT_EQ(p.errors || p.warnings, !is({Answer::taken})) << all;
  EXPECT_EQ(r.refuses, is({Answer::unlike, Answer::unknown, Answer::refused})) << all;
  EXPECT_EQ(c.refuses || c.errors, is({Answer::unlike, Answer::unknown, Answer::refused})) << all;
}

TEST(OneAnswer, TheTableIsLong) {
  EXPECT_GE(all_odd().size(), 40u);
}

}  // namespace
}  // namespace assay::test
