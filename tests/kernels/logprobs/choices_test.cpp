// Choices near a tie: which other keys an error in the scores may make, and a reading in which they are chosen.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/logprobs/choice_ops.h"
#include "kernels/logprobs/choice_ties.h"
#include "refimpl/ops/reference.h"

namespace assay::logprobs {
namespace {

using Keys = std::vector<std::int32_t>;

WatchedChoice two_of(std::vector<double> scores) {
  WatchedChoice choice = {.kind = ChoiceKind::keys, .name = "layers.3", .choose = chooser_of_keys(2)};
  choice.chosen = {choice.choose(scores)};
  choice.scores = {std::move(scores)};
  return choice;
}

ChoiceErrors off_by(double error) {
  return {.kind = ChoiceKind::keys, .largest = error / 2, .tokens = {{}}};
}

TEST(ChoicesOfKeys, NearATieAreTheNearestFirst) {
  const std::vector<WatchedChoice> choices = {two_of({3.9, 5, 4, 3.85, 1})};
  EXPECT_TRUE(ties_of(choices, 0, 0, off_by(0.04)).empty());  // 0.05 brings key 0 and key 2 together
  const std::vector<ChoiceTie> ties = ties_of(choices, 0, 0, off_by(0.2));
  ASSERT_EQ(ties.size(), 2U);
  EXPECT_EQ(ties[0].left, Keys{2});
  EXPECT_EQ(ties[0].taken, Keys{0});
  EXPECT_EQ(ties[0].turned.chosen, (Keys{0, 1}));
  EXPECT_NEAR(ties[0].moved, 0.05, 1e-3);
  EXPECT_EQ(ties[1].taken, Keys{3});
  EXPECT_NEAR(ties[1].moved, 0.075, 1e-3);
  EXPECT_EQ(describe_tie(ties[0]),
            "layers.3, token 0: key 0 in place of 2 (a tie is 0.05 away, and scores may be off by 0.2)");
}

// Two keys at once for two others, which no exchange of one for another is.
TEST(ChoicesOfKeys, ThePlainComputationsOwnIsAmongThem) {
  const std::vector<WatchedChoice> choices = {two_of({4, 4, 3.9, 3.9})};
  ChoiceErrors errors = off_by(0.2);
  errors.tokens[0].turned = {{{-0.1, -0.1, 0.1, 0.1}, {2, 3}}, {{-0.3, -0.3, 0, 0}, {2, 3}}};
  const std::vector<ChoiceTie> ties = ties_of(choices, 0, 0, errors);
  ASSERT_EQ(ties.size(), 5U);
  EXPECT_EQ(std::count_if(ties.begin(), ties.end(), [](const ChoiceTie& tie) { return tie.as_plain; }), 1);
  EXPECT_TRUE(ties.back().as_plain);
  EXPECT_EQ(ties.back().taken, (Keys{2, 3}));
}

TEST(ChoicesOfKeys, AllThatThereAreIsNoChoice) {
  WatchedChoice choice = two_of({});
  choice.chosen = {{0, 1}};
  EXPECT_TRUE(ties_of(std::vector{choice}, 0, 0, off_by(1)).empty());
}

// Two tokens, one head of one element: key s scores k[s].
class Reading {
 public:
  explicit Reading(Precision precision, std::size_t most_bytes = kMostScoreBytes)
      : inner_({precision}, 1), ops(inner_, 2, most_bytes) {
    ops.step(std::vector<std::uint32_t>{0, 0});
    ops.see("layers.3.index_weights", {});
  }
  KeyChoice choose(const std::vector<double>& keys) {
    const auto column = [&](const std::vector<double>& values) {
      return inner_.upload(values, values.size(), 1);
    };
    return ops.choose_keys(
        {.q = column({1, 1}),
         .weights = column({1, 1}),
         .sequences =
             {{.first = 0, .queries = 2, .position = keys.size() - 2, .key_rows = {.base = column(keys)}}},
         .heads = 1,
         .head_dim = 1,
         .top_k = 2});
  }

 private:
  ReferenceOps inner_;

 public:
  ChoiceOps ops;
};

TEST(ChoiceOps, RecordsWhatIsChosenAndTurnsIt) {
  Reading reading(Precision::f64);
  std::vector<WatchedChoice> choices;
  reading.ops.record(choices);
  const TurnedChoice turned = {.choice = 0, .token = 1, .move = {}, .chosen = {0, 2}};
  reading.ops.turn({&turned, 1});
  const KeyChoice choice = reading.choose({1, 3, 2});
  EXPECT_EQ(choice.keys, (std::vector<Keys>{{0, 1}, {0, 2}}));
  EXPECT_EQ(choice.positions.row<double>(1)[1], 2);
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_EQ(choices[0].name, "layers.3");
  EXPECT_EQ(choices[0].scores, (std::vector<std::vector<double>>{{}, {1, 3, 2}}));
  EXPECT_EQ(choices[0].chosen, choice.keys);
}

// Key 0 is off, and chosen in place of key 1: token 1 is turned, and what scores are off by for it in the next layer is no
// rounding.
TEST(ChoiceOps, ErrorsAreOfTokensThatChoseAsTheTruth) {
  Reading truth(Precision::f64), plain(Precision::bf16);
  std::vector<WatchedChoice> choices;
  std::vector<ChoiceErrors> errors;
  truth.ops.record(choices);
  plain.ops.hold_against(choices, errors);
  truth.choose({1 + 0x1p-8, 1 + 0x1p-7, 2});
  const KeyChoice chosen = plain.choose({1 + 0x1p-6, 1 + 0x1p-7, 2});
  EXPECT_EQ(chosen.keys[1], (Keys{0, 2}));
  EXPECT_FALSE(plain.ops.turned(0));
  EXPECT_TRUE(plain.ops.turned(1));
  ASSERT_EQ(errors[0].tokens[1].turned.size(), 1U);
  EXPECT_EQ(errors[0].tokens[1].turned[0].chosen, (Keys{0, 2}));
  EXPECT_EQ(errors[0].largest, 0x1p-6 - 0x1p-8);  // while it chose: the error that turned it counts
  truth.choose({1, 1, 5});
  plain.choose({1, 1, 9});
  EXPECT_EQ(errors[1].largest, 0);
  EXPECT_EQ(errors[1].tokens[1].count, 0U);
}

// Room for the scores of one layer: what the next one chose is known, and not by what.
TEST(ChoiceOps, KeepNoMoreScoresThanThereIsRoomFor) {
  Reading truth(Precision::f64, 3 * sizeof(double)), plain(Precision::bf16);
  std::vector<WatchedChoice> choices;
  std::vector<ChoiceErrors> errors;
  truth.ops.record(choices);
  plain.ops.hold_against(choices, errors);
  truth.choose({1, 3, 2});
  plain.choose({1, 3, 2});
  EXPECT_EQ(truth.ops.unkept(), 0U);
  truth.choose({1, 3, 2});
  plain.choose({1, 3, 0.5});
  EXPECT_EQ(truth.ops.unkept(), 1U);
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[1].scores, (std::vector<std::vector<double>>{{}, {}}));
  EXPECT_EQ(choices[1].chosen, (std::vector<Keys>{{0, 1}, {1, 2}}));
  EXPECT_TRUE(plain.ops.turned(1));
  EXPECT_TRUE(errors[1].tokens[1].turned.empty());
  EXPECT_TRUE(ties_of(choices, 1, 1, off_by(1)).empty());
}

}  // namespace
}  // namespace assay::logprobs
