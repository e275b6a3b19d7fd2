// What config.json says is left unquantized, asked as the loaders ask: by the names of the modules that
// transformers and vLLM make, which are not always the checkpoint's.
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/convert/convert_support.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

// compressed-tensors' match_name: equal, or after "re:" a pattern from the start on.
bool ignores(const nlohmann::json& ignore, const std::string& module) {
  for (const auto& entry : ignore) {
    const std::string text = entry.get<std::string>();
    if (text == module) return true;
    if (text.starts_with("re:") &&
        std::regex_search(module, std::regex("^" + text.substr(3), std::regex::ECMAScript)))
      return true;
  }
  return false;
}

nlohmann::json quantization(const fs::path& in, const std::string& spec) {
  const fs::path out = in.string() + "-" + spec.substr(0, 4);
  expect_ok(assay({"convert", in, out, "--to", spec}));
  return nlohmann::json::parse(test::read_file(out / "config.json")).at("quantization_config");
}

// A language model inside another, beside a vision tower, its experts routed: transformers moves all of them.
TEST(Ignored, ModulesAreListedAsTheLoadersNameThem) {
  const TempDir dir;
  test::write_matrices(
      dir / "in",
      {"language_model.model.embed_tokens.weight", "language_model.lm_head.weight",
       "language_model.model.layers.0.self_attn.q_proj.weight",
       "language_model.model.layers.0.block_sparse_moe.gate.weight",
       "language_model.model.layers.0.block_sparse_moe.experts.0.w1.weight",
       "language_model.model.layers.0.mixer.conv1d.weight",
       "vision_tower.encoder.layers.0.self_attn.q_proj.weight", "multi_modal_projector.linear_1.weight"},
      R"({"architectures":["SomethingNewForCausalLM"],"model_type":"new"})");
  const auto ignore = quantization(dir / "in", "int8:channel").at("ignore");
  for (const char* left :
       {"lm_head", "language_model.lm_head", "model.vision_tower.encoder.layers.0.self_attn.q_proj",
        "model.layers.0.mlp.router", "model.layers.0.mlp.gate",
        "language_model.model.layers.0.block_sparse_moe.gate", "model.multi_modal_projector.linear_1",
        "model.language_model.layers.0.mixer.conv1d"})
    EXPECT_TRUE(ignores(ignore, left)) << left << ignore;
  for (const char* converted :
       {"model.language_model.layers.0.self_attn.q_proj", "language_model.model.layers.0.self_attn.q_proj",
        "language_model.model.layers.0.block_sparse_moe.experts.0.w1"})
    EXPECT_FALSE(ignores(ignore, converted)) << converted << ignore;

  const auto fp8 = quantization(dir / "in", "fp8:block=8x8").at("modules_to_not_convert");
  EXPECT_NE(std::find(fp8.begin(), fp8.end(), "model.vision_tower"), fp8.end()) << fp8;
  const auto modelopt = quantization(dir / "in", "nvfp4,layout=modelopt").at("ignore");
  EXPECT_NE(std::find(modelopt.begin(), modelopt.end(), "*vision_tower*"), modelopt.end()) << modelopt;
}

// A pattern never speaks of what is quantized.
TEST(Ignored, APatternIsLeftOutWhereItWouldMatchQuantizedModules) {
  const TempDir dir;
  test::write_matrices(dir / "in",
                       {"model.language_model.layers.0.self_attn.q_proj.weight",
                        "model.language_model.layers.1.self_attn.q_proj.weight",
                        "model.vision_tower.layers.1.self_attn.q_proj.weight"},
                       R"({"architectures":["SomethingNewForCausalLM"],"model_type":"new"})");
  const fs::path out = dir / "out";
  expect_ok(assay({"convert", dir / "in", out, "--to", "int8:channel", "--exclude", "layers.0"}));
  const auto ignore =
      nlohmann::json::parse(test::read_file(out / "config.json")).at("quantization_config").at("ignore");
  EXPECT_TRUE(ignores(ignore, "language_model.model.layers.0.self_attn.q_proj"));
  EXPECT_FALSE(ignores(ignore, "language_model.model.layers.1.self_attn.q_proj"));
  EXPECT_TRUE(ignores(ignore, "vision_tower.layers.1.self_attn.q_proj"));
}

}  // namespace
}  // namespace assay
