// Routers and indexers while a text is read: what they chose by and whom, and a truth in which some choose otherwise.
#pragma once

#include <string>
#include <vector>

#include "kernels/logprobs/choices.h"
#include "kernels/model_compare/passing_ops.h"
#include "refimpl/ops/own_choice.h"
#include "refimpl/step/taps.h"

namespace assay::logprobs {

// Hands all on to `inner`, and looks after choices, which are numbered as they come in a step. Both it and its taps go to the reader of
// one text of `tokens` tokens.
// Bytes of scores that the reading of one text keeps: those of 8 routers of 256 experts over 16,384 tokens, or of an indexer over
// 8,192.
inline constexpr std::size_t kMostScoreBytes = std::size_t{256} << 20;

class ChoiceOps final : public PassingOps, public TapListener, public ChoiceWatcher {
 public:
  ChoiceOps(Ops& inner, std::size_t tokens, std::size_t most_bytes = kMostScoreBytes)
      : PassingOps(inner), tokens_(tokens), room_(most_bytes) {}

  // What is chosen, and by what, goes there.
  void record(std::vector<WatchedChoice>& choices) { record_ = &choices; }
  void turn(std::span<const TurnedChoice> turned) { turned_ = turned; }
  // Held against these, which have been read as far; the errors of scores are added to `errors`.
  void hold_against(const std::vector<WatchedChoice>& choices, std::vector<ChoiceErrors>& errors) {
    truth_ = &choices, errors_ = &errors;
  }
  // Choices of a token that were made, and whose scores were not kept: there was no room. Nobody can tell whether they were near a tie.
  std::size_t unkept() const { return unkept_; }
  // Some choice was another for that token.
  bool turned(std::size_t token) const { return token < turned_tokens_.size() && turned_tokens_[token]; }

  void see(const std::string& tap, const Matrix&) override;
  void step(std::span<const std::uint32_t> tokens) override;
  using PassingOps::run;
  Routing run(const MoeGateCall& call) override;
  KeyChoice run(const IndexCall& call) override;
  Matrix scores_of_choice(const Matrix& scores, const Rule& rule) override;

 private:
  // One call's: by row.
  struct Rows {
    std::vector<std::vector<double>> scores;
    std::vector<std::vector<std::int32_t>> chosen;
  };
  bool watches() const { return record_ != nullptr || truth_ != nullptr; }
  Matrix turned_logits(const Matrix& logits, const Chooser& choose);
  Rows rows_of(const Matrix& logits, const std::vector<std::int32_t>& experts);
  Rows rows_of(const IndexCall& call, const KeyChoice& choice);
  // `watched` without rows.
  void watch(WatchedChoice watched, const Rows& rows, std::size_t tokens_a_key);
  void keep(WatchedChoice watched, const Rows& rows);
  // Scores of keys are left out where a token behind the key was turned; 0 tokens a key: they are no keys'.
  void compare(ChoiceKind kind, const Rows& rows, std::size_t tokens_a_key);
  bool take_room(std::size_t scores);
  bool is_of_turned(std::size_t key, std::size_t tokens_a_key) const;

  std::size_t tokens_, first_ = 0, next_ = 0, choice_ = 0;
  std::size_t room_, unkept_ = 0;  // bytes yet
  std::string name_;
  std::vector<WatchedChoice>* record_ = nullptr;
  std::span<const TurnedChoice> turned_;
  const std::vector<WatchedChoice>* truth_ = nullptr;
  std::vector<ChoiceErrors>* errors_ = nullptr;
  std::vector<bool> turned_tokens_;
};

}  // namespace assay::logprobs
