// The same models out of GGUF (data/tiny_models/gguf_files.py): names, layouts and settings differ, numbers
// do not.
#include <regex>

#include "tests/refimpl/models/golden_run.h"

namespace assay {
namespace {

using test::folder;
using test::largest;
using test::largest_difference;
using test::Runner;
using test::tokens_of;

// Rotary factors and ε lie in float32 there. Measured: 1.1e-7 for llama, 7e-8 for the others with factors of
// their own (phi3, minicpm3), 5e-9 for DeepSeek, at most 2e-12 for those without (qwen2, qwen3-moe, mixtral,
// gpt2, gpt-oss).
constexpr double kOfGguf = 1e-6;

class FromGguf : public testing::TestWithParam<const char*> {
 protected:
  std::map<std::string, test::Numbers> golden =
      test::read_tensors(folder(GetParam()) / "golden/transformers.safetensors");
  std::string path = std::string(GetParam()) + "/gguf/model.gguf";
};

TEST_P(FromGguf, LogitsAreThoseOfTheSafetensors) {
  const std::vector<double>& truth = golden.at("logits.f64").values;
  Runner run(path, Precision::f64);
  EXPECT_LE(largest_difference(run(tokens_of(golden.at("tokens"))), truth), kOfGguf * largest(truth));
}

class FromGgufLong : public FromGguf {};
TEST_P(FromGgufLong, BeyondTheOriginalContext) {
  const std::vector<double>& truth = golden.at("long.logits.f64").values;
  Runner run(path, Precision::f64);
  EXPECT_LE(largest_difference(run(tokens_of(golden.at("long.tokens"))), truth), kOfGguf * largest(truth));
}

TEST_P(FromGguf, GreedyTextIsEqual) {
  const std::vector<TokenId> expected = tokens_of(golden.at("greedy"));
  EXPECT_EQ(Runner(path, Precision::f32).greedy(tokens_of(golden.at("tokens")), expected.size()), expected);
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  return std::regex_replace(std::string(info.param), std::regex("-"), "_");
}
INSTANTIATE_TEST_SUITE_P(Models, FromGgufLong,
                         testing::Values("llama", "qwen2", "phi3", "minicpm3", "deepseek-v3", "gpt-oss"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Models, FromGguf,
                         testing::Values("llama", "mixtral", "qwen2", "qwen3-moe", "phi3", "gpt2", "minicpm3",
                                         "deepseek-v2-lite", "deepseek-v3", "gpt-oss"),
                         test_name);

TEST(GgufHalves, BothFormsOfLatentAttention) {
  const auto golden = test::read_tensors(folder("deepseek-v3") / "golden/transformers.safetensors");
  const std::vector<double>& truth = golden.at("logits.f64").values;
  Runner run("deepseek-v3/gguf/model.gguf", Precision::f64, {.mla = MlaForm::naive});
  EXPECT_LE(largest_difference(run(tokens_of(golden.at("tokens"))), truth), kOfGguf * largest(truth));
}

}  // namespace
}  // namespace assay
