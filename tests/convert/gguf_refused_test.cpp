// What a config asks for and no key of a GGUF tells: refused by name, before anything is written.
#include <nlohmann/json.hpp>

#include "tests/convert/convert_support.h"

namespace assay {
namespace {

test::ProcessResult exported(const std::string& model, const nlohmann::json& changes,
                             const test::TempDir& dir, const std::string& more = "") {
  const fs::path original = test::source_dir() / "data/models" / model, copy = dir / model;
  fs::create_directories(copy);
  auto config = nlohmann::json::parse(test::read_file(original / "config.json"));
  config.merge_patch(changes);
  test::write_file(copy / "config.json", config.dump());
  fs::create_symlink(original / "model.safetensors", copy / "model.safetensors");
  std::vector<std::string> arguments = {"convert", copy.string(), (dir / (model + ".gguf")).string(),
                                        "--to",    "gguf:f16",    "--tokenizer-pre",
                                        "none"};
  if (!more.empty()) arguments.push_back(more);
  return test::assay(arguments);
}

TEST(GgufRefused, ActivationsThatLlamaCppDoesNotCompute) {
  for (const char* model :
       {"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3-moe", "deepseek-v2", "deepseek-v3"}) {
    const test::TempDir dir;
    for (const char* more : {"", "--dry-run"}) {
      const test::ProcessResult result = exported(model, {{"hidden_act", "gelu"}}, dir, more);
      EXPECT_EQ(result.exit_code, 1) << model << result.out;
      EXPECT_NE(result.err.find("hidden_act is \"gelu\""), std::string::npos) << model << result.err;
      EXPECT_FALSE(fs::exists(dir / (std::string(model) + ".gguf"))) << model;
      fs::remove_all(dir / model);
    }
    EXPECT_EQ(exported(model, {{"hidden_act", "silu"}}, dir).exit_code, 0) << model;
  }
}

TEST(GgufRefused, WeightsOfExpertsThatDoNotAddUpToOne) {
  const test::TempDir dir;
  const test::ProcessResult result = exported("qwen3-moe", {{"norm_topk_prob", false}}, dir);
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.err.find("norm_topk_prob is false"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace assay
