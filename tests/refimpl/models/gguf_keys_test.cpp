// Every key below the architecture of a GGUF: read, of a value that changes nothing, or refused by name.
#include "core/model/gguf_keys.h"

#include <sstream>

#include "core/formats/gguf_write.h"
#include "core/system/error.h"
#include "refimpl/models/model_notes.h"
#include "tests/refimpl/models/golden_run.h"

namespace assay {
namespace {

using gguf::KeyValue;

// A model of data/models with keys added to its metadata, or set to other values.
class WithKeys {
 public:
  WithKeys(const std::string& model, const std::vector<KeyValue>& keys) {
    const fs::path original = test::folder(model) / "gguf/model.gguf";
    const std::string bytes = test::read_file(original);
    const gguf::Header header =
        gguf::parse_header(std::as_bytes(std::span(bytes.data(), bytes.size())), bytes.size(), original);
    std::vector<KeyValue> metadata = header.metadata;
    for (const KeyValue& key : keys) gguf::set_value(metadata, key);
    test::write_file(path(), gguf::serialize_header(metadata, header.tensors, header.alignment) +
                                 bytes.substr(header.data_offset));
  }
  fs::path path() const { return dir_ / "model.gguf"; }

 private:
  test::TempDir dir_;
};

std::string error_of(const std::string& model, const KeyValue& key) {
  const WithKeys changed(model, {key});
  try {
    const Weights weights(changed.path(), 1);
    make_model(weights, {});
  } catch (const Error& error) {
    return error.line();
  }
  return "";
}

std::string notes_of(const fs::path& path) {
  const Weights weights(path, 1);
  std::string all;
  for (const std::string& note : model_notes(weights, Precision::f64, "reference")) all += note + "\n";
  return all;
}

// data/make_gguf_keys.py
TEST(GgufKeys, OfTheGgufPackageAreAllKnown) {
  std::istringstream list(test::read_file(test::source_dir() / "data/fixtures/gguf/KEYS.txt"));
  std::size_t count = 0;
  for (std::string key; std::getline(list, key);) {
    if (key.starts_with("#")) continue;
    ++count;
    EXPECT_NE(fate_of_gguf_key(key), GgufKeyFate::unknown) << key;
  }
  EXPECT_GT(count, 100u);
  EXPECT_EQ(fate_of_gguf_key("a_new_one"), GgufKeyFate::unknown);
}

// Values: what converters of llama.cpp write for models of other architectures.
TEST(GgufKeys, ThatChangeNumbersAreRefusedByName) {
  const std::vector<std::pair<std::string, KeyValue>> refused = {
      {"llama", gguf::f32_value("llama.logit_scale", 0.0625)},
      {"llama", gguf::f32_value("llama.residual_scale", 0.22)},
      {"llama", gguf::f32_value("llama.embedding_scale", 12)},
      {"llama", gguf::f32_value("llama.attention.scale", 0.015625)},
      {"llama", gguf::f32_value("llama.attn_logit_softcapping", 50)},
      {"llama", gguf::f32_value("llama.final_logit_softcapping", 30)},
      {"llama", gguf::f32_value("llama.attention.clamp_kqv", 8)},
      {"llama", gguf::f32_value("llama.attention.max_alibi_bias", 8)},
      {"llama", gguf::bool_value("llama.attention.causal", false)},
      {"llama", gguf::bool_value("llama.use_parallel_residual", true)},
      {"llama", gguf::f32_value("llama.rope.scaling.attn_factor", 1.19)},
      {"llama", gguf::f32_value("llama.rope.scaling.alpha", 1000)},
      {"llama", gguf::f32_value("llama.rope.scale_linear", 4)},
      {"llama", gguf::u32_value("llama.rope.dimension_count", 4)},
      {"llama", gguf::u32_value("llama.attention.value_length", 4)},
      {"llama", gguf::i32s_value("llama.rope.dimension_sections", std::vector<std::int32_t>{2, 1, 1, 0})},
      {"llama", gguf::u32_value("llama.ssm.conv_kernel", 4)},
      {"llama", gguf::f32_value("llama.rope.freq_base_swa", 700)},
      {"qwen2", gguf::f32_value("qwen2.rope.scaling.yarn_ext_factor", 0.5)},
      {"qwen2", gguf::f32_value("qwen2.rope.scaling.yarn_attn_factor", 1.5)},
      {"qwen2", gguf::f32_value("qwen2.rope.scaling.attn_factor", 1.5)},
      {"qwen2", gguf::f32_value("qwen2.rope.scaling.yarn_log_multiplier", 0.1)},
      {"mixtral", gguf::bool_value("llama.expert_weights_norm", false)},
      {"mixtral", gguf::f32_value("llama.expert_weights_scale", 2.5)},
      {"mixtral", gguf::u32_value("llama.expert_gating_func", 2)},
      {"qwen3-moe", gguf::u32_value("qwen3moe.expert_gating_func", 2)},
      {"qwen3-moe", gguf::u32_value("qwen3moe.expert_group_count", 4)},
      {"deepseek-v2-lite", gguf::bool_value("deepseek2.expert_weights_norm", true)},
      {"deepseek-v2-lite", gguf::u32_value("deepseek2.expert_gating_func", 3)}};
  for (const auto& [model, key] : refused) {
    const std::string line = error_of(model, key);
    EXPECT_NE(line.find(key.key + " is "), std::string::npos) << model << " " << key.key << ": " << line;
    EXPECT_NE(line.find("not computed here"), std::string::npos) << line;
  }
}

TEST(GgufKeys, OfNeutralValuesAreAllowed) {
  const Weights llama(test::folder("llama") / "gguf/model.gguf", 1);
  const auto head_dim = static_cast<double>(llama.tree().attention.at(0).qk_head_dim);
  const std::vector<std::pair<std::string, KeyValue>> allowed = {
      {"llama", gguf::f32_value("llama.logit_scale", 1)},
      {"llama", gguf::f32_value("llama.attention.scale", 1 / std::sqrt(head_dim))},
      {"llama", gguf::f32_value("llama.attention.clamp_kqv", 0)},
      {"llama", gguf::bool_value("llama.attention.causal", true)},
      {"llama", gguf::f32_value("llama.rope.scaling.attn_factor", 1)},
      {"llama", gguf::bool_value("llama.rope.scaling.finetuned", true)},
      {"llama", gguf::text_value("llama.tensor_data_layout", "Meta AI original pth")},
      {"mixtral", gguf::bool_value("llama.expert_weights_norm", true)},
      {"qwen3-moe", gguf::u32_value("qwen3moe.expert_gating_func", 1)},
      {"qwen2", gguf::f32_value("qwen2.rope.scaling.yarn_ext_factor", 1)}};
  for (const auto& [model, key] : allowed) {
    EXPECT_EQ(error_of(model, key), "") << model << " " << key.key;
    EXPECT_EQ(notes_of(WithKeys(model, {key}).path()), "") << model << " " << key.key;
  }
}

TEST(GgufKeys, NobodyReadsAreNoted) {
  const WithKeys changed(
      "llama", {gguf::f32_value("llama.a_new_one", 3), gguf::u32_value("llama.attention.sliding_window", 8),
                gguf::f32_value("other.logit_scale", 3)});
  EXPECT_EQ(notes_of(changed.path()),
            "model.gguf: not read: llama.a_new_one, llama.attention.sliding_window\n");
}

TEST(GgufKeys, OfTheModelsHereNeedNoNote) {
  for (const char* model : {"llama", "mixtral", "qwen2", "qwen3-moe", "phi3", "gpt2", "minicpm3",
                            "deepseek-v2-lite", "deepseek-v3", "gpt-oss"})
    EXPECT_EQ(notes_of(test::folder(model) / "gguf/model.gguf"), "") << model;
}

// Read: other values, other numbers.
TEST(GgufKeys, ThatAreReadChangeLogits) {
  const std::vector<TokenId> tokens = {1, 5, 9, 2, 2, 7};
  const auto logits = [&](const std::string& model, const std::vector<KeyValue>& keys) {
    return test::Runner(WithKeys(model, keys).path(), Precision::f64)(tokens);
  };
  for (const auto& [model, key] : std::vector<std::pair<std::string, KeyValue>>{
           {"deepseek-v2-lite", gguf::f32_value("deepseek2.expert_weights_scale", 2.5)},
           {"qwen3-moe", gguf::bool_value("qwen3moe.expert_weights_norm", false)},
           {"qwen2", gguf::f32_value("qwen2.rope.scaling.factor", 7)},
           {"llama", gguf::f32_value("llama.rope.freq_base", 700)},
           {"llama", gguf::f32_value("llama.attention.layer_norm_rms_epsilon", 0.1)}}) {
    const std::vector<double> before = logits(model, {}), after = logits(model, {key});
    EXPECT_GT(test::largest_difference(after, before), 1e-6 * test::largest(before)) << key.key;
  }
}

}  // namespace
}  // namespace assay
