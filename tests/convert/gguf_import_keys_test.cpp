// Every key below the architecture of a GGUF, when safetensors are made of it: told on by config.json, of a
// value that changes nothing, or refused by name.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/formats/gguf_write.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using gguf::KeyValue;
using test::assay;
using test::expect_ok;
using test::TempDir;

// A model of data/models with one key more, or another value of it.
void write_with(const std::string& model, const KeyValue& key, const fs::path& out) {
  const fs::path original = test::source_dir() / "data/models" / model / "gguf/model.gguf";
  const std::string bytes = test::read_file(original);
  const gguf::Header header =
      gguf::parse_header(std::as_bytes(std::span(bytes.data(), bytes.size())), bytes.size(), original);
  std::vector<KeyValue> metadata = header.metadata;
  gguf::set_value(metadata, key);
  test::write_file(out, gguf::serialize_header(metadata, header.tensors, header.alignment) +
                            bytes.substr(header.data_offset));
}

test::ProcessResult imported(const std::string& model, const KeyValue& key, const TempDir& dir,
                             const std::string& more = "") {
  write_with(model, key, dir / "model.gguf");
  std::vector<std::string> arguments = {"convert", dir / "model.gguf", dir / "back", "--to", "f32"};
  if (!more.empty()) arguments.push_back(more);
  return assay(arguments);
}

// Values: what converters of llama.cpp write for models of other architectures.
TEST(GgufImportKeys, ThatConfigCannotTellAreRefusedByName) {
  const std::vector<std::pair<std::string, KeyValue>> refused = {
      {"llama", gguf::f32_value("llama.logit_scale", 0.0625)},
      {"llama", gguf::f32_value("llama.attention.scale", 0.015625)},
      {"llama", gguf::f32_value("llama.attn_logit_softcapping", 50)},
      {"llama", gguf::f32_value("llama.final_logit_softcapping", 30)},
      {"llama", gguf::f32_value("llama.attention.clamp_kqv", 8)},
      {"llama", gguf::bool_value("llama.attention.causal", false)},
      {"llama", gguf::u32_value("llama.rope.dimension_count", 4)},
      {"llama", gguf::f32_value("llama.rope.freq_base_swa", 700)},
      {"qwen2", gguf::f32_value("qwen2.rope.scaling.yarn_attn_factor", 1.5)},
      {"mixtral", gguf::f32_value("llama.expert_weights_scale", 2.5)},
      {"mixtral", gguf::u32_value("llama.expert_gating_func", 2)},
      {"qwen3-moe", gguf::u32_value("qwen3moe.expert_group_count", 4)},
      {"deepseek-v2-lite", gguf::bool_value("deepseek2.expert_weights_norm", true)}};
  for (const auto& [model, key] : refused) {
    for (const char* more : {"", "--dry-run"}) {
      const TempDir dir;
      const test::ProcessResult result = imported(model, key, dir, more);
      EXPECT_EQ(result.exit_code, 2) << model << " " << key.key << result.out;
      EXPECT_NE(result.err.find(key.key + " is "), std::string::npos) << result.err;
      EXPECT_NE(result.err.find("config.json of a"), std::string::npos) << result.err;
      EXPECT_FALSE(fs::exists(dir / "back")) << key.key;
    }
  }
}

TEST(GgufImportKeys, OfOtherValuesAreToldOn) {
  struct Told {
    std::string model;
    KeyValue key;
    std::string name;
    nlohmann::json value;
  };
  const std::vector<Told> all = {
      {"qwen3-moe", gguf::bool_value("qwen3moe.expert_weights_norm", false), "norm_topk_prob", false},
      {"mixtral", gguf::u32_value("llama.attention.sliding_window", 8), "sliding_window", 8},
      {"deepseek-v2-lite", gguf::f32_value("deepseek2.expert_weights_scale", 2.5), "routed_scaling_factor",
       2.5},
      {"qwen2", gguf::f32_value("qwen2.rope.freq_base", 700), "rope_theta", 700},
      {"llama", gguf::f32_value("llama.attention.layer_norm_rms_epsilon", 0.125), "rms_norm_eps", 0.125}};
  for (const Told& told : all) {
    const TempDir dir;
    expect_ok(imported(told.model, told.key, dir));
    const auto config = nlohmann::json::parse(test::read_file(dir / "back/config.json"));
    EXPECT_EQ(config.value(told.name, nlohmann::json()), told.value) << told.key.key;
  }
}

TEST(GgufImportKeys, ThatChangeNothingPassAndUnknownOnesAreNoted) {
  for (const KeyValue& key :
       {gguf::f32_value("llama.logit_scale", 1), gguf::bool_value("llama.attention.causal", true),
        gguf::text_value("llama.tensor_data_layout", "Meta AI original pth")}) {
    const TempDir dir;
    const test::ProcessResult result = imported("llama", key, dir);
    expect_ok(result);
    EXPECT_EQ(result.out.find("not read"), std::string::npos) << result.out;
  }
  for (const KeyValue& key :
       {gguf::f32_value("llama.a_new_one", 3), gguf::u32_value("llama.attention.sliding_window", 8)}) {
    const TempDir dir;
    const test::ProcessResult result = imported("llama", key, dir);
    expect_ok(result);
    EXPECT_NE(result.out.find("not in config.json: " + key.key), std::string::npos) << result.out;
  }
}

}  // namespace
}  // namespace assay
