// Every family against what transformers computes of data/models/<name> (data/make_models.py).
#include <regex>

#include "tests/refimpl/models/golden_run.h"

namespace assay {
namespace {

using test::difference_beyond_float32;
using test::folder;
using test::kOfDoubles;
using test::largest;
using test::largest_difference;
using test::Numbers;
using test::Runner;
using test::tokens_of;

// A tap of ours as transformers has it: the experts chosen and their weights, in the order of their numbers,
// out of the matrix of all weights.
std::vector<double> chosen(const std::vector<double>& dense, std::size_t experts, bool weights) {
  std::vector<double> values;
  for (std::size_t i = 0; i < dense.size(); ++i) {
    if (dense[i] != 0) values.push_back(weights ? dense[i] : static_cast<double>(i % experts));
  }
  return values;
}

// Of latent attention what is kept is latents, never keys and values; deepseek_test.cpp looks at queries.
bool is_expanded(const std::string& name, const ModuleTree& tree) {
  return !tree.attention.empty() && tree.attention.at(0).kind == AttentionGeometry::Kind::latent &&
         (name.ends_with(".q") || name.ends_with(".k") || name.ends_with(".v"));
}

std::vector<double> tap(const Runner& run, const std::string& name) {
  const std::size_t dot = name.rfind(".router_");
  const bool routing = dot != std::string::npos && !name.ends_with("_logits");
  const auto found = run.taps().find(routing ? name.substr(0, dot) + ".router_weights" : name);
  if (found == run.taps().end()) return {};
  if (!routing) return found->second;
  // Those of LongCat that hold nothing are scored, too.
  const std::size_t tokens = run.taps().at("final_norm").size() / run.weights().tree().hidden_size;
  return chosen(found->second, found->second.size() / tokens, name.ends_with("_weights"));
}

class Golden : public testing::TestWithParam<const char*> {
 protected:
  std::map<std::string, Numbers> golden =
      test::read_tensors(folder(GetParam()) / "golden/transformers.safetensors");
  std::vector<TokenId> prompt = tokens_of(golden.at("tokens"));
};

TEST_P(Golden, DoubleAgreesWithDoubleTransformers) {
  const std::vector<double>& truth = golden.at("logits.f64").values;
  const double error = largest_difference(Runner(GetParam(), Precision::f64)(prompt), truth);
  EXPECT_LE(error, kOfDoubles * largest(truth));
}

TEST_P(Golden, SingleAgreesWithTransformers) {
  const std::vector<double>& expected = golden.at("logits.f32").values;
  const double error = largest_difference(Runner(GetParam(), Precision::f32)(prompt), expected);
  EXPECT_LE(error, 1e-4 * largest(expected));
}

// The yardstick is how far PyTorch's own bfloat16, which expands latents, strays from the truth: at most
// twice as far, at least half as far, and with it.
TEST_P(Golden, HalfStraysAsPyTorchDoes) {
  const std::vector<double>&truth = golden.at("logits.f64").values, &torch = golden.at("logits.bf16").values;
  const double yardstick = largest_difference(torch, truth);
  Runner run(GetParam(), Precision::bf16, {.mla = MlaForm::naive});
  const std::vector<double> ours = run(prompt);
  EXPECT_LE(largest_difference(ours, truth), 2 * yardstick);
  EXPECT_GE(largest_difference(ours, truth), yardstick / 2);
  // DeepSeek-V4's class keeps sinks and the weights of norms in float32.
  const double farthest =
      std::string(GetParam()) == "deepseek-v4" ? 2 : test::farthest_from_pytorch(GetParam());
  EXPECT_LE(largest_difference(ours, torch), farthest * yardstick);
}

TEST_P(Golden, EveryNamedIntermediateAgrees) {
  Runner run(GetParam(), Precision::f64);
  run(prompt);
  std::size_t compared = 0;
  for (const auto& [name, numbers] : golden) {
    if (!name.starts_with("tap.") || is_expanded(name, run.weights().tree())) continue;
    EXPECT_LE(difference_beyond_float32(tap(run, name.substr(4)), numbers.values),
              kOfDoubles * largest(numbers.values))
        << name;
    ++compared;
  }
  EXPECT_GT(compared, 10U);
}

// Those whose rotary frequencies depend on a context that was stretched.
class GoldenLong : public Golden {};
TEST_P(GoldenLong, BeyondTheOriginalContext) {
  const std::vector<double>& truth = golden.at("long.logits.f64").values;
  Runner run(GetParam(), Precision::f64);
  EXPECT_LE(largest_difference(run(tokens_of(golden.at("long.tokens"))), truth), kOfDoubles * largest(truth));
}

TEST_P(Golden, GreedyTextIsEqual) {
  const std::vector<TokenId> expected = tokens_of(golden.at("greedy"));
  EXPECT_EQ(Runner(GetParam(), Precision::f32).greedy(prompt, expected.size()), expected);
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  return std::regex_replace(std::string(info.param), std::regex("-"), "_");
}
INSTANTIATE_TEST_SUITE_P(Models, GoldenLong,
                         testing::Values("llama", "llama-dynamic", "qwen2", "phi3", "gpt-oss", "minicpm3",
                                         "deepseek-v3"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         testing::Values("llama", "llama-dynamic", "mistral", "qwen2", "qwen3", "qwen3-moe",
                                         "qwen3-moe-unnormalized", "mixtral", "gemma2", "gemma3", "phi3",
                                         "olmo2", "gpt2", "gpt-oss", "minicpm3", "deepseek-v2",
                                         "deepseek-v2-lite", "deepseek-v3", "deepseek-v3-fp8", "kimi-k2",
                                         "qwen3-next", "qwen3-5", "qwen3-5-moe", "lfm2", "bamba", "mamba",
                                         "mamba2", "lfm2-moe", "jamba"),
                         test_name);

// DeepSeek's kin.
INSTANTIATE_TEST_SUITE_P(Latent, GoldenLong, testing::Values("deepseek-v4"), test_name);
INSTANTIATE_TEST_SUITE_P(Latent, Golden,
                         testing::Values("deepseek-v32", "glm-moe-dsa", "glm4-moe-lite", "axk1", "youtu",
                                         "deepseek-v4", "longcat-flash"),
                         test_name);

}  // namespace
}  // namespace assay
