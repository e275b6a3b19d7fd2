// Mistral's own files, as a release has them: consolidated.safetensors and params.json, beside the config.json of other files.
// Commands read the weights by the description that is theirs.
#include "tests/refimpl/models/golden_run.h"
#include "tests/refimpl/models/kin_families.h"
#include "tests/refimpl/models/made_weights.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr std::pair<const char*, const char*> kTheirs[] = {
    {"hidden_size", "dim"},
    {"intermediate_size", "hidden_dim"},
    {"num_hidden_layers", "n_layers"},
    {"num_attention_heads", "n_heads"},
    {"num_key_value_heads", "n_kv_heads"},
    {"head_dim", "head_dim"},
    {"vocab_size", "vocab_size"},
    {"rms_norm_eps", "norm_eps"},
    {"tie_word_embeddings", "tied_embeddings"},
    {"max_position_embeddings", "max_position_embeddings"},
    {"sliding_window", "sliding_window"}};

// What kin.py's config says, in the words of params.json.
json params_of(const json& config) {
  json params;
  for (const auto& [ours, theirs] : kTheirs)
    if (config.contains(ours)) params[theirs] = config[ours];
  const json& rope = config["rope_parameters"];
  params["rope_theta"] = rope["rope_theta"];
  if (rope["rope_type"] == "yarn")
    params["yarn"] = {{"factor", rope["factor"]},
                      {"beta", rope["beta_fast"]},
                      {"alpha", rope["beta_slow"]},
                      {"original_max_position_embeddings", rope["original_max_position_embeddings"]},
                      {"apply_scale", false}};
  if (rope.contains("llama_4_scaling_beta"))
    params["llama_4_scaling"] = {{"beta", rope["llama_4_scaling_beta"]},
                                 {"original_max_position_embeddings", rope["llama_4_scaling_floor"]}};
  if (config.contains("num_local_experts"))
    params["moe"] = {{"num_experts", config["num_local_experts"]},
                     {"num_experts_per_tok", config["num_experts_per_tok"]}};
  return params;
}

void put_release(const json& config, const fs::path& told, const fs::path& own) {
  test::put_made_model(told, config.dump());
  fs::create_directories(own);
  fs::copy(told / "model.safetensors", own / "consolidated.safetensors");
  test::write_file(own / "params.json", params_of(config).dump());
  test::write_file(
      own / "config.json",
      R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 4096})");
}

// `convert` describes what it makes as the source is described, and by nothing else.
TEST(MistralNative, WhatIsMadeOfItIsDescribedByItsParams) {
  const json variant = json::parse(test::read_file(test::kin_folder() / "mistral_native.json"))[1];
  const test::TempDir place;
  const fs::path own = place / "own", made = place / "made";
  put_release(variant["config"], place / "told", own);
  const auto converted = test::assay({"convert", own.string(), made.string(), "--to", "fp8:tensor"});
  ASSERT_EQ(converted.exit_code, 0) << converted.out << converted.err;
  EXPECT_FALSE(fs::exists(made / "config.json"));
  const json params = json::parse(test::read_file(made / "params.json"));
  EXPECT_EQ(params["quantization"]["quant_method"], "compressed-tensors");
  EXPECT_FALSE(params.contains("quantization_config"));
  EXPECT_EQ(params["dim"], variant["config"]["hidden_size"]);
  const auto counted = test::assay({"paramcount", made.string()});
  EXPECT_EQ(counted.exit_code, 0) << counted.out;
  const auto plain = test::assay({"convert", made.string(), (place / "plain").string(), "--to", "bf16"});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_FALSE(json::parse(test::read_file(place / "plain/params.json")).contains("quantization"));
  const std::vector<TokenId> tokens = variant["tokens"];
  EXPECT_EQ(test::Runner(made.string(), Precision::bf16)(tokens).size(),
            test::Runner((place / "plain").string(), Precision::bf16)(tokens).size());
}

TEST(MistralNative, AReleaseIsComputedByItsParams) {
  std::size_t variants = 0;
  for (const json& variant : json::parse(test::read_file(test::kin_folder() / "mistral_native.json"))) {
    const test::TempDir place;
    const fs::path told = place / "told", own = place / "own";
    put_release(variant["config"], told, own);
    const std::vector<TokenId> tokens = variant["tokens"];
    for (const Precision precision : {Precision::f64, Precision::bf16})
      EXPECT_EQ(test::Runner(own.string(), precision)(tokens),
                test::Runner(told.string(), precision)(tokens));
    const auto checked = test::assay({"check", own.string()}),
               verified = test::assay({"verify", own.string(), "--json", "-"});
    EXPECT_EQ(checked.exit_code, 0) << checked.out;
    EXPECT_EQ(verified.out.find("\"model."), std::string::npos) << verified.out;
    ++variants;
  }
  EXPECT_EQ(variants, 3u);
}

}  // namespace
}  // namespace assay
