// The sampler of a sequence against the law written down anew, by enumeration of every combination of rules.
#include "refimpl/sampling/sequence_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "core/system/error.h"

namespace assay {
namespace {

using Law = std::vector<double>;
constexpr double kNo = -std::numeric_limits<double>::infinity();

Law normalized(Law p) {
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

// Tokens by a worth, the best first, the earlier of equals.
std::vector<std::size_t> ranked(const Law& worth) {
  std::vector<std::size_t> order(worth.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return worth[a] > worth[b]; });
  return order;
}

// What the params say, in probabilities instead of logits, counted from scratch.
Law plain_law(Law logits, const SamplingParams& p, const std::vector<TokenId>& prompt,
              const std::vector<TokenId>& output) {
  for (const auto& [id, bias] : p.logit_bias)
    if (id < logits.size()) logits[id] += bias;
  if (output.size() < p.min_tokens)
    for (const TokenId id : p.stop_tokens) logits[id] = kNo;
  for (TokenId id = 0; id < logits.size(); ++id) {
    const auto in_prompt = std::count(prompt.begin(), prompt.end(), id);
    const auto in_output = std::count(output.begin(), output.end(), id);
    if (in_prompt + in_output > 0)
      logits[id] *= logits[id] > 0 ? 1 / p.repetition_penalty : p.repetition_penalty;
    logits[id] -=
        p.frequency_penalty * static_cast<double>(in_output) + (in_output > 0 ? p.presence_penalty : 0);
  }
  Law law(logits.size());
  for (std::size_t i = 0; i < law.size(); ++i) law[i] = std::exp(logits[i] / p.temperature);
  law = normalized(law);
  if (p.top_k != 0) {
    const auto order = ranked(law);
    for (std::size_t i = p.top_k; i < order.size(); ++i) law[order[i]] = 0;
    law = normalized(law);
  }
  if (p.top_p < 1) {
    double before = 0;
    for (const std::size_t i : ranked(law)) {
      const double own = law[i];
      if (before >= p.top_p) law[i] = 0;
      before += own;
    }
    law = normalized(law);
  }
  if (p.min_p > 0) {
    const double least = p.min_p * *std::max_element(law.begin(), law.end());
    for (double& x : law) x = x < least ? 0 : x;
    law = normalized(law);
  }
  if (p.typical_p < 1) {
    double entropy = 0;
    for (const double x : law) entropy -= x > 0 ? x * std::log(x) : 0;
    Law nearness(law.size(), kNo);
    for (std::size_t i = 0; i < law.size(); ++i)
      if (law[i] > 0) nearness[i] = -std::abs(-std::log(law[i]) - entropy);
    double before = 0;
    for (const std::size_t i : ranked(nearness)) {
      const double own = law[i];
      if (before >= p.typical_p) law[i] = 0;
      before += own;
    }
    law = normalized(law);
  }
  return law;
}

Law logits_of(std::uint64_t seed, std::size_t vocabulary) {
  Law logits(vocabulary);
  for (std::size_t i = 0; i < vocabulary; ++i) logits[i] = 8 * keyed_uniform({seed}, i) - 4;
  return logits;
}

std::vector<SamplingParams> combinations() {
  std::vector<SamplingParams> all = {{.temperature = 1}};
  const auto cross = [&](auto... change) {
    const std::vector<SamplingParams> before = std::move(all);
    all.clear();
    for (const SamplingParams& params : before) {
      all.push_back(params);
      const auto add = [&](auto set) {
        SamplingParams changed = params;
        set(changed);
        all.push_back(changed);
      };
      (add(change), ...);
    }
  };
  using P = SamplingParams;
  cross([](P& p) { p.temperature = 0.6; }, [](P& p) { p.temperature = 1.7; });
  cross([](P& p) { p.top_k = 1; }, [](P& p) { p.top_k = 5; });
  cross([](P& p) { p.top_p = 0.3; }, [](P& p) { p.top_p = 0.85; });
  cross([](P& p) { p.min_p = 0.07; });
  cross([](P& p) { p.typical_p = 0.6; });
  cross([](P& p) { p.repetition_penalty = 1.3; });
  cross([](P& p) { p.presence_penalty = 0.9; }, [](P& p) { p.presence_penalty = -0.4; });
  cross([](P& p) { p.frequency_penalty = 0.35; });
  cross([](P& p) { p.logit_bias = {{2, 3.0}, {5, kNo}, {70, 1.0}}; });
  cross([](P& p) {
    p.min_tokens = 5;
    p.stop_tokens = {3, 6};
  });
  return all;
}

TEST(SamplingLaw, EveryCombinationOfRulesIsTheFormula) {
  const std::vector<TokenId> prompt = {1, 4, 4, 90}, output = {0, 2, 2, 7};
  std::size_t cases = 0;
  double worst = 0;
  for (const SamplingParams& params : combinations()) {
    for (const std::size_t vocabulary : {8, 16}) {
      const Law logits = logits_of(cases, vocabulary);
      SequenceSampler sampler(params, prompt);
      for (const TokenId id : output) sampler.push(id);
      const Law ours = sampler.process(logits), truth = plain_law(logits, params, prompt, output);
      ASSERT_EQ(ours.size(), truth.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        const double error = std::abs(ours[i] - truth[i]);
        ASSERT_TRUE(error <= 1e-12) << "case " << cases << ", token " << i << ": " << ours[i] << " for "
                                    << truth[i];
        worst = std::max(worst, error);
      }
      ++cases;
    }
  }
  EXPECT_EQ(cases, 2U * 3 * 3 * 3 * 2 * 2 * 2 * 3 * 2 * 2 * 2);
  RecordProperty("worst_times_1e18", static_cast<int>(worst * 1e18));
}

// Without a temperature no law is made; the token is the one that it would be all on.
TEST(SamplingLaw, GreedyChoicesAreTheLaws) {
  const std::vector<TokenId> prompt = {1, 4, 4}, output = {0, 2, 2, 7};
  std::uint64_t seed = 0, differing = 0;
  for (SamplingParams params : combinations()) {
    params.temperature = 0;
    const Law logits = logits_of(++seed, 12);
    SequenceSampler sampler(params, prompt);
    for (const TokenId id : output) sampler.push(id);
    const TokenId chosen = sampler.sample(logits);
    ASSERT_EQ(chosen, sampler.draw(sampler.process(logits), 0)) << seed;
    ASSERT_EQ(sampler.process(logits)[chosen], 1) << seed;
    differing += chosen != SequenceSampler({}, {}).sample(logits) ? 1 : 0;
  }
  EXPECT_GT(differing, seed / 10);
}

TEST(SequenceSampler, TokensTakenBackLeaveNoTrace) {
  const SamplingParams params = {
      .temperature = 0.9, .repetition_penalty = 1.2, .presence_penalty = 0.5, .frequency_penalty = 0.3};
  const std::vector<TokenId> prompt = {1, 2};
  const Law logits = logits_of(3, 12);
  SequenceSampler straight(params, prompt), wandering(params, prompt);
  for (const TokenId id : {4, 5}) straight.push(id);
  for (const TokenId id : {4, 9, 1}) wandering.push(id);
  wandering.pop(2);
  for (const TokenId id : {5, 4, 5}) wandering.push(id);
  wandering.pop(2);
  EXPECT_EQ(wandering.process(logits), straight.process(logits));
  EXPECT_EQ(wandering.position(), straight.position());
  EXPECT_EQ(wandering.sample(logits), straight.sample(logits));
  EXPECT_THROW(wandering.pop(3), Error);
}

// A speculated run: each position's law with the guesses before it pushed is the law of plain decoding, and one
// penalty a token (shipped otherwise: counted once for the run, or twice).
TEST(SequenceSampler, PenaltiesInARunOfGuessesAreThoseOfPlainDecoding) {
  const SamplingParams params = {.temperature = 1, .presence_penalty = 0.7, .frequency_penalty = 0.4};
  const std::vector<TokenId> run = {3, 3, 0, 3};
  SequenceSampler guessing(params, {});
  std::vector<Law> laws;
  for (std::size_t i = 0; i < run.size(); ++i) {
    laws.push_back(guessing.process(logits_of(i, 6)));
    guessing.push(run[i]);
  }
  guessing.pop(run.size());
  for (std::size_t i = 0; i < run.size(); ++i) {
    const Law truth =
        plain_law(logits_of(i, 6), params, {}, {run.begin(), run.begin() + static_cast<long>(i)});
    for (std::size_t t = 0; t < truth.size(); ++t) EXPECT_NEAR(laws[i][t], truth[t], 1e-12) << i << ", " << t;
  }
}

// Neither who draws beside a sequence, nor how often anyone asks, nor in which order, changes what it draws.
TEST(SequenceSampler, ATextKnowsNothingOfItsNeighbours) {
  const auto text = [](SequenceSampler& sampler, std::size_t length, SequenceSampler* neighbour) {
    for (std::size_t i = 0; i < length; ++i) {
      if (neighbour != nullptr) neighbour->push(neighbour->sample(logits_of(i + 100, 16)));
      sampler.push(sampler.sample(logits_of(i, 16)));
    }
    return std::vector<TokenId>(sampler.outputs().begin(), sampler.outputs().end());
  };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const SamplingParams params = {.temperature = 1.1, .top_p = 0.9, .seed = seed};
    SequenceSampler alone(params, {}), beside(params, {}), neighbour({.temperature = 1}, {});
    EXPECT_EQ(text(alone, 24, nullptr), text(beside, 24, &neighbour)) << seed;
    SamplingParams second = params;
    second.sample = 1;
    SequenceSampler other(second, {});
    EXPECT_NE(text(other, 24, nullptr), std::vector<TokenId>(alone.outputs().begin(), alone.outputs().end()));
  }
}

// What was made may become prompt (a request that is preempted and computed anew, or continued): same numbers.
TEST(SequenceSampler, DrawsAreKeyedByThePlaceInTheSequence) {
  const SamplingParams params = {.temperature = 1.3, .seed = 11};
  const std::vector<TokenId> prompt = {1, 2, 3}, longer = {1, 2, 3, 9, 9};
  SequenceSampler pushed(params, prompt), given(params, longer);
  pushed.push(9);
  pushed.push(9);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const TokenId a = pushed.sample(logits_of(i, 16));
    EXPECT_EQ(a, given.sample(logits_of(i, 16)));
    pushed.push(a);
    given.push(a);
  }
}

TEST(SequenceSampler, AMillionDrawsFollowTheLaw) {
  const SamplingParams params = {.temperature = 1.2,
                                 .top_k = 12,
                                 .top_p = 0.97,
                                 .repetition_penalty = 1.1,
                                 .presence_penalty = 0.2,
                                 .logit_bias = {{1, 1.0}},
                                 .seed = 2026};
  const std::vector<TokenId> prompt = {2, 3, 3};
  const SequenceSampler sampler(params, prompt);
  const Law law = sampler.process(logits_of(5, 16));
  constexpr int kDraws = 1'000'000;
  std::vector<int> counts(law.size());
  for (int i = 0; i < kDraws; ++i) ++counts[sampler.draw(law, static_cast<std::uint64_t>(i))];
  double chi_square = 0;
  int possible = 0;
  for (std::size_t i = 0; i < law.size(); ++i) {
    if (law[i] == 0) {
      EXPECT_EQ(counts[i], 0) << i;
      continue;
    }
    ++possible;
    chi_square += std::pow(counts[i] - kDraws * law[i], 2) / (kDraws * law[i]);
  }
  EXPECT_GE(possible, 8);
  EXPECT_LT(chi_square,
            36.7);  // at most 15 degrees of freedom, less than one in a thousand; the seed is fixed
}

// A list of choices, as a grammar would be.
class Only : public TokenConstraint {
 public:
  explicit Only(std::vector<TokenId> ids) : ids_(std::move(ids)) {}
  void restrict(TokenMask& mask) const override {
    for (TokenId id = 0; id < mask.size(); ++id)
      if (pushed_ >= 2 || std::find(ids_.begin(), ids_.end(), id) == ids_.end()) mask.remove(id);
  }
  void push(TokenId) override { ++pushed_; }
  void pop(std::size_t count) override { pushed_ -= count; }
  std::unique_ptr<TokenConstraint> fork() const override { return std::make_unique<Only>(*this); }

 private:
  std::vector<TokenId> ids_;
  std::size_t pushed_ = 0;
};

TEST(SequenceSampler, AConstraintIsObeyedForkedAndTakenBack) {
  SequenceSampler sampler({.temperature = 1}, {}, std::make_unique<Only>(std::vector<TokenId>{2, 4}));
  Law law = sampler.process(logits_of(1, 6));
  for (const std::size_t i : {0, 1, 3, 5}) EXPECT_EQ(law[i], 0) << i;
  EXPECT_NEAR(law[2] + law[4], 1, 1e-15);
  SequenceSampler fork = sampler;
  sampler.push(2);
  sampler.push(4);
  EXPECT_TRUE(sampler.complete(6));
  EXPECT_FALSE(fork.complete(6));
  EXPECT_THROW(sampler.process(logits_of(1, 6)), Error);
  sampler.pop(1);
  EXPECT_FALSE(sampler.complete(6));
}

// A constraint that allows nothing but the end outweighs min_tokens.
TEST(SequenceSampler, AConstraintMayEndBeforeMinTokens) {
  const SamplingParams params = {.temperature = 1, .min_tokens = 3, .stop_tokens = {2}};
  EXPECT_EQ(
      SequenceSampler(params, {}, std::make_unique<Only>(std::vector<TokenId>{2})).sample(logits_of(1, 4)),
      2U);
  EXPECT_EQ(
      SequenceSampler(params, {}, std::make_unique<Only>(std::vector<TokenId>{2, 3})).sample(logits_of(1, 4)),
      3U);
}

TEST(SequenceSampler, MinTokensEndWithTheLastOfThem) {
  SequenceSampler sampler({.temperature = 1, .min_tokens = 2, .stop_tokens = {0}}, {});
  const Law logits = {100, 0};
  for (const TokenId expected : {1U, 1U, 0U}) {
    EXPECT_EQ(sampler.sample(logits), expected);
    sampler.push(expected);
  }
}

TEST(SequenceSampler, LogProbabilitiesBeforeAndAfter) {
  const SequenceSampler sampler({.temperature = 0, .logit_bias = {{1, 10.0}}}, {});
  const Law logits = {std::log(0.5), std::log(0.25), std::log(0.25)};
  EXPECT_EQ(sampler.sample(logits), 1U);
  const Law adjusted = sampler.adjust(logits);
  EXPECT_NEAR(adjusted[1], std::log(0.25) + 10, 1e-15);
  EXPECT_EQ(adjusted[0], logits[0]);
}

TEST(SequenceSampler, WhatNoRuleCanBeIsRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const SamplingParams& bad : std::vector<SamplingParams>{{.temperature = -1},
                                                               {.temperature = nan},
                                                               {.top_p = 0},
                                                               {.top_p = nan},
                                                               {.min_p = 1.5},
                                                               {.typical_p = 0},
                                                               {.repetition_penalty = 0},
                                                               {.presence_penalty = nan},
                                                               {.frequency_penalty = 1e9},
                                                               {.logit_bias = {{1, nan}}}})
    EXPECT_THROW(SequenceSampler(bad, {}), Error);
}

}  // namespace
}  // namespace assay
