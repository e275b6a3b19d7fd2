// A tiny model of data/models run on the reference operations, its taps kept.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "refimpl/models/model.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/sample.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "tests/support/tensors.h"

namespace assay::test {

inline fs::path folder(const std::string& name) {
  return test::source_dir() / "data/models" / name;
}

class Recorder : public TapListener {
 public:
  explicit Recorder(Ops& ops) : ops_(ops) {}
  void see(const std::string& name, const Matrix& value) override { taken[name] = ops_.download(value); }
  std::map<std::string, std::vector<double>> taken;

 private:
  Ops& ops_;
};

inline double largest(const std::vector<double>& values) {
  double m = 0;
  for (const double v : values) m = std::max(m, std::abs(v));
  return m;
}
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double m = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!(std::abs(a[i] - b[i]) <= m)) m = std::abs(a[i] - b[i]);
  }
  return a.size() == b.size() ? m : INFINITY;
}

// How far two computations in double may be apart, in units of the largest value. Measured over all models,
// prompts and forms: at most 5.7e-15 (DeepSeek-V2 against DeepSeek's own code; llama against transformers
// 5.6e-15).
inline constexpr double kOfDoubles = 1e-12;

// What is left of the largest difference where `stored` was written in float32: half a unit in its last place
// is the writing's.
inline double difference_beyond_float32(const std::vector<double>& ours, const std::vector<double>& stored) {
  EXPECT_EQ(ours.size(), stored.size());
  double m = 0;
  for (std::size_t i = 0; i < std::min(ours.size(), stored.size()); ++i) {
    const double beyond = std::abs(ours[i] - stored[i]) - std::ldexp(std::abs(stored[i]), -24);
    if (!(beyond <= m)) m = beyond;
  }
  return ours.size() == stored.size() ? m : INFINITY;
}

// How far from PyTorch's bfloat16 a family may be, in units of how far that is from the truth. Most round
// where it does, at every step, and nearly every logit is the same number, but for sums of float32, in
// PyTorch's order, that fall on the other side of a tie. These round elsewhere:
//   deepseek-v2, olmo2  queries and keys are rotated in float32 there, cos and sin unrounded
//   gpt-oss             an expert's products are rounded before their bias, scores once more before softmax
inline double farthest_from_pytorch(const std::string& model) {
  if (model.starts_with("deepseek-v2")) return 4;
  if (model == "olmo2" || model == "gpt-oss") return 1.5;
  return 1;
}

inline std::vector<TokenId> tokens_of(const Numbers& numbers) {
  return {numbers.values.begin(), numbers.values.end()};
}

class Runner {
 public:
  // Of data/models, or wherever a whole path leads.
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
    cache_.require_room(tokens.size());
    Batch batch;
    batch.add(tokens, cache_);
    const Taps taps(recorder_);
    const Matrix logits = model_->logits(model_->hidden(batch, ops_, taps), ops_, taps);
    cache_.advance(tokens.size());
    return ops_.download(logits);
  }
  void take_back(std::size_t length) { cache_.truncate(length); }
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
  // Of the modules for multi-token prediction, one after the other: position i of the first is given what the model said
  // at i, and token i + 1; of each behind it what the one before said there, and the token one farther on.
  std::vector<std::vector<double>> drafts(const std::vector<TokenId>& tokens) {
    cache_.truncate(0);
    SequenceCache own(ops_, model_->cache_widths(), model_->context());
    Batch batch;
    batch.add(tokens, cache_);
    const Taps taps(recorder_);
    Matrix given = model_->hidden(batch, ops_, {});
    std::vector<std::vector<double>> said;
    for (std::size_t m = 0; m < model_->draft_layers(); ++m) {
      Batch next;
      next.add(std::span(tokens).subspan(m + 1), own);
      given = model_->draft(m, next, given.row_range(0, tokens.size() - m - 1), ops_, taps);
      said.push_back(ops_.download(model_->draft_logits(m, given, ops_, taps)));
    }
    return said;
  }
  std::vector<double> draft(const std::vector<TokenId>& tokens) { return drafts(tokens).at(0); }
  const std::map<std::string, std::vector<double>>& taps() const { return recorder_.taken; }
  const Weights& weights() const { return weights_; }

 private:
  Weights weights_;
  ReferenceOps ops_;
  std::unique_ptr<LanguageModel> model_;
  Recorder recorder_;
  SequenceCache cache_;
};

}  // namespace assay::test
