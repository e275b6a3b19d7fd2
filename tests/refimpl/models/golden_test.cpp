// Every family against what transformers computes of data/models/<name> (data/make_models.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "refimpl/models/model.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/sample.h"
#include "tests/support/support.h"
#include "tests/support/tensors.h"

namespace assay {
namespace {

using test::Numbers;

fs::path folder(const std::string& name) {
  return fs::path(ASSAY_SOURCE_DIR) / "data/models" / name;
}

class Recorder : public TapListener {
 public:
  explicit Recorder(Ops& ops) : ops_(ops) {}
  void see(const std::string& name, const Matrix& value) override { taken[name] = ops_.download(value); }
  std::map<std::string, std::vector<double>> taken;

 private:
  Ops& ops_;
};

double largest(const std::vector<double>& values) {
  double m = 0;
  for (const double v : values) m = std::max(m, std::abs(v));
  return m;
}
double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double m = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!(std::abs(a[i] - b[i]) <= m)) m = std::abs(a[i] - b[i]);
  }
  return a.size() == b.size() ? m : INFINITY;
}

std::vector<TokenId> tokens_of(const Numbers& numbers) {
  return {numbers.values.begin(), numbers.values.end()};
}

class Runner {
 public:
  Runner(const std::string& name, Precision precision, const ModelOptions& options = {})
      : weights_(folder(name), 1),
        ops_({precision}, 1),
        model_(make_model(weights_, options)),
        recorder_(ops_),
        cache_(ops_, model_->cache_widths(), model_->context()) {}

  // Logits of every position.
  std::vector<double> operator()(const std::vector<TokenId>& tokens) {
    cache_.truncate(0);
    return step(tokens);
  }
  std::vector<double> step(const std::vector<TokenId>& tokens) {
    cache_.reserve(tokens.size());
    Batch batch;
    batch.add(tokens, cache_);
    const Taps taps(recorder_);
    const Matrix logits = model_->logits(model_->hidden(batch, ops_, taps), ops_, taps);
    cache_.advance(tokens.size());
    return ops_.download(logits);
  }
  std::vector<TokenId> greedy(std::vector<TokenId> tokens, std::size_t count) {
    std::vector<TokenId> chosen;
    (*this)(tokens);
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<double>& logits = recorder_.taken.at("logits");
      const std::size_t vocabulary = model_->vocabulary();
      const auto last = std::span(logits).last(vocabulary);
      chosen.push_back(static_cast<TokenId>(argmax(last)));
      tokens.push_back(chosen.back());
      if (model_->cache_serves(cache_.length(), cache_.length() + 1))
        step({chosen.back()});
      else
        (*this)(tokens);
    }
    return chosen;
  }
  const std::map<std::string, std::vector<double>>& taps() const { return recorder_.taken; }

 private:
  Weights weights_;
  ReferenceOps ops_;
  std::unique_ptr<LanguageModel> model_;
  Recorder recorder_;
  SequenceCache cache_;
};

class Golden : public testing::TestWithParam<const char*> {
 protected:
  std::map<std::string, Numbers> golden = test::read_tensors(folder(GetParam()) / "golden.safetensors");
  std::vector<TokenId> prompt = tokens_of(golden.at("tokens"));
};

TEST_P(Golden, DoubleAgreesWithDoubleTransformers) {
  const std::vector<double>& truth = golden.at("logits.f64").values;
  const double error = largest_difference(Runner(GetParam(), Precision::f64)(prompt), truth);
  EXPECT_LE(error, 2e-6 * largest(truth));
}

TEST_P(Golden, SingleAgreesWithTransformers) {
  const std::vector<double>& expected = golden.at("logits.f32").values;
  const double error = largest_difference(Runner(GetParam(), Precision::f32)(prompt), expected);
  EXPECT_LE(error, 1e-4 * largest(expected));
}

// The yardstick: at most twice as far from the truth as PyTorch's own bfloat16.
TEST_P(Golden, HalfIsAsGoodAsPyTorch) {
  const std::vector<double>& truth = golden.at("logits.f64").values;
  const double yardstick = largest_difference(golden.at("logits.bf16").values, truth);
  EXPECT_LE(largest_difference(Runner(GetParam(), Precision::bf16)(prompt), truth), 2 * yardstick);
}

TEST_P(Golden, EveryNamedIntermediateAgrees) {
  Runner run(GetParam(), Precision::f64);
  run(prompt);
  std::size_t compared = 0;
  for (const auto& [name, numbers] : golden) {
    if (!name.starts_with("tap.")) continue;
    const auto found = run.taps().find(name.substr(4));
    ASSERT_NE(found, run.taps().end()) << name;
    EXPECT_LE(largest_difference(found->second, numbers.values),
              2e-6 * std::max(1e-3, largest(numbers.values)))
        << name;
    ++compared;
  }
  EXPECT_GT(compared, 10U);
}

TEST_P(Golden, BeyondTheOriginalContext) {
  if (!golden.contains("long.tokens")) GTEST_SKIP() << "no long prompt for this family";
  const std::vector<double>& truth = golden.at("long.logits.f64").values;
  Runner run(GetParam(), Precision::f64);
  EXPECT_LE(largest_difference(run(tokens_of(golden.at("long.tokens"))), truth), 2e-6 * largest(truth));
}

TEST_P(Golden, GreedyTextIsEqual) {
  const std::vector<TokenId> expected = tokens_of(golden.at("greedy"));
  EXPECT_EQ(Runner(GetParam(), Precision::f32).greedy(prompt, expected.size()), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         testing::Values("llama", "llama-dynamic", "mistral", "qwen2", "qwen3"),
                         [](const auto& info) {
                           return std::regex_replace(std::string(info.param), std::regex("-"), "_");
                         });

}  // namespace
}  // namespace assay
