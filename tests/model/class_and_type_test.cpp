// Configs whose class and type are of two families, and the many whose are not.
#include "core/model/class_and_type.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/formats/json.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

std::optional<Finding> of(const std::string& text) {
  return class_unlike_type(ModelConfig::from_json(parse_json(text, "config.json"), "config.json"));
}

TEST(ClassAndType, OfTwoFamiliesAreAFinding) {
  const auto finding = of(R"({"architectures": ["LlamaForCausalLM"], "model_type": "qwen2"})");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->code, "model.type_differs");
  EXPECT_EQ(finding->severity, Severity::warning);
  EXPECT_TRUE(of(R"({"architectures": ["Qwen2ForSequenceClassification"], "model_type": "llama"})"));
}

TEST(ClassAndType, AreSilentOtherwise) {
  EXPECT_FALSE(of(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})"));
  EXPECT_FALSE(of(R"({"architectures": ["LlamaForCausalLM"]})"));
  EXPECT_FALSE(of(R"({"model_type": "llama"})"));
  EXPECT_FALSE(of(R"({"architectures": ["LlamaForCausalLM"], "model_type": "of-mine"})"));
  EXPECT_FALSE(of(R"({"architectures": ["UnheardOf"], "model_type": "llama"})"));
  EXPECT_FALSE(of(R"({"architectures": ["LlamaForCausalLM"], "model_type": "qwen2", "auto_map": {}})"));
  EXPECT_FALSE(of(R"({"architectures": ["Qwen2ForSequenceClassification"], "model_type": "qwen2"})"));
}

TEST(ClassAndType, OfFixturesAgree) {
  std::size_t seen = 0;
  for (const char* folder : {"configs", "own_code_configs", "mlx_configs", "draft_configs"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(test::source_dir() / "data/fixtures" / folder)) {
      if (entry.path().extension() != ".json") continue;
      const auto finding = class_unlike_type(ModelConfig::read(entry.path()));
      EXPECT_FALSE(finding) << entry.path() << ": " << finding->message;
      ++seen;
    }
  }
  EXPECT_GT(seen, 100u);
}

}  // namespace
}  // namespace assay
