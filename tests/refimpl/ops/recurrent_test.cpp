// The operations of recurrent layers: a step may be cut anywhere and be of several sequences, its chunked form is
// the recurrent one, what is given up never was, and small cases by hand. Against transformers: models/golden_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/system/error.h"
#include "refimpl/ops/reference.h"
#include "refimpl/step/kv_cache.h"

namespace assay {
namespace {

struct Stored {
  std::string name = "w";
  std::vector<double> values;
  WeightView view;
  Stored(std::vector<double> numbers, std::size_t rows) : values(std::move(numbers)) {
    view.name = &name;
    view.type = ElementType::F64;
    view.rows = rows;
    view.columns = values.size() / rows;
    view.codes = std::as_bytes(std::span(values)).data();
    view.row_bytes = view.columns * sizeof(double);
  }
};

std::vector<double> random(std::size_t count, std::uint32_t seed, double low = -1, double high = 1) {
  std::mt19937 generator(seed);
  std::vector<double> values(count);
  for (double& value : values) value = low + (high - low) * (generator() / 4294967296.0);
  return values;
}

constexpr std::size_t kTokens = 150;  // of two chunks and a part

// One of the operations on kTokens tokens: run() computes some of them from where a cache stands.
class Recurrence {
 public:
  virtual ~Recurrence() = default;
  virtual std::vector<StateShape> states() const = 0;
  virtual Matrix run(ReferenceOps& ops, std::size_t first, std::vector<SequenceState> states,
                     ScanForm form) = 0;
};

class Convolution : public Recurrence {
 public:
  std::vector<StateShape> states() const override { return {{3, 5}}; }
  Matrix run(ReferenceOps& ops, std::size_t first, std::vector<SequenceState> states, ScanForm) override {
    const Matrix x = ops.upload(x_, kTokens, 5);
    return ops.run(ConvolutionCall{x.row_range(first, rows(states)), weight_.view, bias_.view, true, states});
  }
  static std::size_t rows(const std::vector<SequenceState>& states) {
    std::size_t sum = 0;
    for (const SequenceState& s : states) sum += s.tokens;
    return sum;
  }

 private:
  std::vector<double> x_ = random(kTokens * 5, 1);
  Stored weight_{random(20, 2), 5}, bias_{random(5, 3), 1};
};

class Delta : public Recurrence {
 public:
  explicit Delta(bool by_channel, double floor = 0) : by_channel_(by_channel), floor_(floor) {}
  std::vector<StateShape> states() const override { return {{4 * 6, 3}}; }
  Matrix run(ReferenceOps& ops, std::size_t first, std::vector<SequenceState> states,
             ScanForm form) override {
    const std::size_t count = Convolution::rows(states), decays = by_channel_ ? 4 * 6 : 4;
    const auto cut = [&](const std::vector<double>& x, std::size_t columns) {
      return ops.upload(x, kTokens, columns).row_range(first, count);
    };
    return ops.run(DeltaRuleCall{.q = cut(q_, 12),
                                 .k = cut(k_, 12),
                                 .v = cut(v_, 12),
                                 .decay = cut(by_channel_ ? decay_ : few_, decays),
                                 .beta = cut(beta_, 4),
                                 .decay_log = log_.view,
                                 .decay_bias = by_channel_ ? bias_.view : few_bias_.view,
                                 .decay_floor = floor_,
                                 .key_heads = 2,
                                 .value_heads = 4,
                                 .key_dim = 6,
                                 .value_dim = 3,
                                 .scale = 0.4,
                                 .form = form,
                                 .sequences = std::move(states)});
  }

 private:
  bool by_channel_;
  double floor_;
  std::vector<double> q_ = random(kTokens * 12, 1), k_ = random(kTokens * 12, 2),
                      v_ = random(kTokens * 12, 3), decay_ = random(kTokens * 24, 4),
                      few_ = random(kTokens * 4, 5), beta_ = random(kTokens * 4, 6);
  Stored log_{random(4, 7, -3, 0.5), 1}, bias_{random(24, 8), 1}, few_bias_{random(4, 9), 1};
};

class Space : public Recurrence {
 public:
  explicit Space(bool by_column) : by_column_(by_column) {}
  std::vector<StateShape> states() const override { return {{4 * 3, 5}}; }
  Matrix run(ReferenceOps& ops, std::size_t first, std::vector<SequenceState> states,
             ScanForm form) override {
    const auto cut = [&](const std::vector<double>& x, std::size_t columns) {
      return ops.upload(x, kTokens, columns).row_range(first, Convolution::rows(states));
    };
    return ops.run(StateSpaceCall{.x = cut(x_, 12),
                                  .b = cut(b_, 10),
                                  .c = cut(c_, 10),
                                  .step = cut(step_, 4),
                                  .decay_log = by_column_ ? rates_.view : log_.view,
                                  .skip = skip_.view,
                                  .step_bias = bias_.view,
                                  .least_step = 0.5,
                                  .most_step = 0.9,
                                  .heads = 4,
                                  .head_dim = 3,
                                  .groups = 2,
                                  .state = 5,
                                  .form = form,
                                  .sequences = std::move(states)});
  }

 private:
  bool by_column_;
  std::vector<double> x_ = random(kTokens * 12, 1), b_ = random(kTokens * 10, 2),
                      c_ = random(kTokens * 10, 3), step_ = random(kTokens * 4, 4);
  Stored log_{random(4, 5, -3, 0.5), 1}, rates_{random(20, 6, -3, 0.5), 4}, skip_{random(4, 7), 1},
      bias_{random(4, 8), 1};
};

std::unique_ptr<Recurrence> made(const std::string& name) {
  if (name == "convolution") return std::make_unique<Convolution>();
  if (name == "delta_by_head") return std::make_unique<Delta>(false);
  if (name == "delta_by_channel") return std::make_unique<Delta>(true);
  if (name == "delta_with_floor") return std::make_unique<Delta>(true, -5);
  return std::make_unique<Space>(name == "space_by_column");
}

class Recurrent : public testing::TestWithParam<const char*> {
 protected:
  std::vector<double> step(ReferenceOps& ops, SequenceCache& cache, std::size_t count,
                           ScanForm form = ScanForm::recurrent) {
    const Matrix y = op_->run(ops, cache.length(), {cache.state(0, 0, 0, count)}, form);
    return ops.download(y);
  }
  SequenceCache cache(ReferenceOps& ops) const {
    return {ops, {{.key_width = 0, .value_width = 0, .states = op_->states()}}, kTokens};
  }
  // The whole text in steps of these lengths, over and over.
  std::vector<double> read(ReferenceOps& ops, const std::vector<std::size_t>& lengths,
                           ScanForm form = ScanForm::recurrent) {
    SequenceCache kept = cache(ops);
    std::vector<double> all;
    for (std::size_t i = 0; kept.length() < kTokens; ++i) {
      const std::size_t count = std::min(lengths[i % lengths.size()], kTokens - kept.length());
      const std::vector<double> y = step(ops, kept, count, form);
      all.insert(all.end(), y.begin(), y.end());
      kept.advance(count);
    }
    return all;
  }
  std::unique_ptr<Recurrence> op_ = made(GetParam());
};

TEST_P(Recurrent, ItDoesNotMatterWhereAStepEnds) {
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f64}) {
    ReferenceOps ops({precision}, 1);
    const std::vector<double> whole = read(ops, {kTokens});
    for (const std::vector<std::size_t>& lengths :
         std::vector<std::vector<std::size_t>>{{1}, {3}, {8}, {9}, {70, 1, 2}})
      EXPECT_EQ(read(ops, lengths), whole) << name(precision) << " " << lengths[0];
  }
}

TEST_P(Recurrent, ChunkedIsRecurrent) {
  ReferenceOps ops({Precision::f64}, 1);
  const std::vector<double> plain = read(ops, {kTokens});
  for (const std::vector<std::size_t>& lengths :
       std::vector<std::vector<std::size_t>>{{kTokens}, {64}, {65}, {7}, {100, 3}}) {
    const std::vector<double> chunked = read(ops, lengths, ScanForm::chunked);
    ASSERT_EQ(chunked.size(), plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i)
      ASSERT_NEAR(chunked[i], plain[i], 1e-13) << lengths[0] << " " << i;
  }
}

TEST_P(Recurrent, WhatIsTakenBackNeverWas) {
  ReferenceOps ops({Precision::f32}, 1);
  const std::vector<double> whole = read(ops, {kTokens});
  const std::size_t width = whole.size() / kTokens;
  const auto expect = [&](const std::vector<double>& y, std::size_t at) {
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], whole[at * width + i]) << at << " " << i;
  };
  SequenceCache kept = cache(ops);
  step(ops, kept, 20);  // given up: never advanced
  expect(step(ops, kept, 10), 0);
  kept.advance(10);
  for (std::size_t back = 0; back <= 3; ++back) {
    expect(step(ops, kept, 3), kept.length());
    kept.advance(3);
    kept.truncate(kept.length() - back);
    kept.truncate(kept.length());
    expect(step(ops, kept, 4), kept.length());  // and of this, two count
    kept.advance(2);
    expect(step(ops, kept, 1), kept.length());
    kept.advance(1);
  }
  EXPECT_THROW(kept.truncate(kept.length() - 2), Error);
  expect(step(ops, kept, 2), kept.length());  // refused, and nothing changed
  kept.advance(2);
  expect(step(ops, kept, 20), kept.length());
  kept.advance(20);
  EXPECT_THROW(kept.truncate(kept.length() - 1), Error);
  kept.truncate(0);
  expect(step(ops, kept, 5), 0);
}

TEST_P(Recurrent, SequencesOfABatchAreApart) {
  ReferenceOps ops({Precision::f32}, 2);
  const std::vector<double> whole = read(ops, {kTokens});
  SequenceCache first = cache(ops), second = cache(ops);
  // Rows 0 … 8 of the text are the first sequence, 9 … 13 begin another.
  const std::vector<double> both = ops.download(
      op_->run(ops, 0, {first.state(0, 0, 0, 9), second.state(0, 0, 9, 5)}, ScanForm::recurrent));
  const std::size_t width = whole.size() / kTokens;
  for (std::size_t i = 0; i < 9 * width; ++i) ASSERT_EQ(both[i], whole[i]) << i;
  SequenceCache alone = cache(ops);
  const std::vector<double> own =
      ops.download(op_->run(ops, 9, {alone.state(0, 0, 0, 5)}, ScanForm::recurrent));
  for (std::size_t i = 0; i < own.size(); ++i) ASSERT_EQ(both[9 * width + i], own[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Ops, Recurrent,
                         testing::Values("convolution", "delta_by_head", "delta_by_channel",
                                         "delta_with_floor", "space_by_head", "space_by_column"),
                         [](const auto& info) { return std::string(info.param); });

// One head, one channel: S₁ = k u, u = σ(beta) v; o = q S. With q and k of length 1 and decay 1 at first.
TEST(RecurrentByHand, DeltaRule) {
  ReferenceOps ops({Precision::f64}, 1);
  Stored log({std::log(2.0)}, 1), bias({0.5}, 1);
  SequenceCache cache(ops, {{0, 0, {{1, 1}}}}, 2);
  const Matrix y = ops.run(DeltaRuleCall{.q = ops.upload(std::vector<double>{3, -1}, 2, 1),
                                         .k = ops.upload(std::vector<double>{2, 5}, 2, 1),
                                         .v = ops.upload(std::vector<double>{0.75, 0.25}, 2, 1),
                                         .decay = ops.upload(std::vector<double>{0, -0.5}, 2, 1),
                                         .beta = ops.upload(std::vector<double>{0, 1}, 2, 1),
                                         .decay_log = log.view,
                                         .decay_bias = bias.view,
                                         .key_heads = 1,
                                         .value_heads = 1,
                                         .key_dim = 1,
                                         .value_dim = 1,
                                         .norm_epsilon = 0,
                                         .scale = 0.5,
                                         .sequences = {cache.state(0, 0, 0, 2)}});
  const double first = 2 * 0.5 * 0.75, kept = std::exp(-2 * std::log(2.0)) * first;  // softplus(0) = ln 2
  const double second = kept + 5 * (1 / (1 + std::exp(-1.0))) * (0.25 - 5 * kept);
  EXPECT_NEAR(ops.download(y)[0], 0.5 * 3 * first, 1e-15);
  EXPECT_NEAR(ops.download(y)[1], 0.5 * -1 * second, 1e-15);
}

TEST(RecurrentByHand, GatedNorm) {
  ReferenceOps ops({Precision::f64}, 1);
  Stored weight({2, 3}, 1);
  GatedNormCall call = {.x = ops.upload(std::vector<double>{3, 4, 1, 1}, 1, 4),
                        .gate = ops.upload(std::vector<double>{0, 1, -1, 2}, 1, 4),
                        .weight = weight.view,
                        .epsilon = 0.5,
                        .group = 2};
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  std::vector<double> y = ops.download(ops.run(call));
  EXPECT_NEAR(y[1], 4 / std::sqrt(12.5 + 0.5) * 3 * silu(1), 1e-15);
  EXPECT_NEAR(y[2], 1 / std::sqrt(1 + 0.5) * 2 * silu(-1), 1e-15);
  call.gate_first = true;
  y = ops.download(ops.run(call));
  EXPECT_NEAR(y[3], silu(2) / std::sqrt((silu(-1) * silu(-1) + silu(2) * silu(2)) / 2 + 0.5) * 3, 1e-15);
}

}  // namespace
}  // namespace assay
