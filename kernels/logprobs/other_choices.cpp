#include "kernels/logprobs/other_choices.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "core/system/threads.h"

namespace assay::logprobs {
namespace {

constexpr std::size_t kMostTried = 64;      // truths that are computed for one token
constexpr int kMostTogether = 3;            // choices that are turned for one token
constexpr std::size_t kMostPassedOver = 8;  // tokens that are not explained, where the others may be
constexpr double kHelps = 0.5;  // one of several that are needed leaves at most so much of the error

// How far a text agrees with a truth: up to which of its scored tokens, and how much that one is beyond.
struct Agreement {
  std::size_t first_beyond = 0;  // into the scored ones
  double ratio = 0;              // of that one
  bool better_than(const Agreement& other) const {
    return first_beyond != other.first_beyond ? first_beyond > other.first_beyond : ratio < other.ratio;
  }
};

class ChoiceSearch {
 public:
  ChoiceSearch(TruthMaker& maker, const BeyondText& text) : maker_(maker), text_(text) {}

  OtherChoices run() {
    result_.turned = text_.turned;
    truth_ = read();
    agreement_ = agreement(truth_);
    while (!interrupted() && agreement_.first_beyond < text_.scored.size()) {
      if (explain_one()) continue;
      if (!text_.partly || passed_over_.size() == kMostPassedOver) break;
      passed_over_.insert(agreement_.first_beyond);
      agreement_ = agreement(truth_);
    }
    result_.explained = agreement_.first_beyond == text_.scored.size();
    if (!result_.turned.empty() && !interrupted()) result_.tokens = std::move(truth_.tokens);
    return std::move(result_);
  }

 private:
  std::vector<TurnedChoice> turned() const {
    std::vector<TurnedChoice> all;
    for (const ChoiceTie& tie : result_.turned) all.push_back(tie.turned);
    return all;
  }
  TruthMaker::OtherTruth read() const { return maker_.read_otherwise(text_.ids, text_.asked, turned()); }

  Agreement agreement(const TruthMaker::OtherTruth& truth) const {
    for (std::size_t i = 0; i < text_.scored.size(); ++i) {
      if (passed_over_.contains(i)) continue;
      const auto& [at, token, budget] = text_.scored[i];
      const double ratio = error_of(*token, truth.tokens[at].logprob) / budget;
      if (!(ratio <= 1)) return {i, ratio};
    }
    return {text_.scored.size(), 0};
  }

  // The first token beyond: true where it is no longer.
  bool explain_one() {
    const std::size_t before = result_.turned.size(), wanted = agreement_.first_beyond;
    const Agreement agreed = agreement_;
    const TruthMaker::OtherTruth without = truth_;
    tried_ = 0;
    for (int i = 0; i < kMostTogether && agreement_.first_beyond == wanted && !interrupted(); ++i) {
      const Agreement then = agreement_;
      if (!turn_one() || (agreement_.first_beyond == wanted && agreement_.ratio > kHelps * then.ratio)) break;
    }
    if (agreement_.first_beyond > wanted) return true;
    result_.turned.resize(before);
    truth_ = without;
    agreement_ = agreed;
    return false;
  }

  // Turns the choice that helps most: of the newest token at which one does, or else of all.
  bool turn_one() {
    std::optional<ChoiceTie> best;
    TruthMaker::OtherTruth with_best;
    Agreement helped = agreement_;
    result_.ties = result_.untried = 0;
    for (ChoiceTie& tie : ties_before(text_.scored[agreement_.first_beyond].at)) {
      if (helped.first_beyond > agreement_.first_beyond && tie.turned.token != best->turned.token) break;
      ++result_.ties;
      if (tried_ == kMostTried || interrupted()) {
        ++result_.untried;
        continue;
      }
      ++tried_;
      result_.turned.push_back(tie);
      TruthMaker::OtherTruth other = read();
      const Agreement with = agreement(other);
      result_.turned.pop_back();
      if (!with.better_than(helped)) continue;
      helped = with;
      with_best = std::move(other);
      best = std::move(tie);
    }
    if (!best) return false;
    result_.turned.push_back(std::move(*best));
    truth_ = std::move(with_best);
    agreement_ = helped;
    return true;
  }

  // The plain computation's own before all others; of both those of the newest token first, and of a token the nearest.
  std::vector<ChoiceTie> ties_before(std::size_t end) const {
    std::vector<ChoiceTie> all;
    for (std::size_t token = end; token-- > 0;) {
      std::vector<ChoiceTie> ties = ties_at(token);
      std::stable_sort(ties.begin(), ties.end(), [](const ChoiceTie& a, const ChoiceTie& b) {
        return a.moved / a.error < b.moved / b.error;
      });
      std::move(ties.begin(), ties.end(), std::back_inserter(all));
    }
    std::stable_partition(all.begin(), all.end(), [](const ChoiceTie& tie) { return tie.as_plain; });
    return all;
  }

  std::vector<ChoiceTie> ties_at(std::size_t token) const {
    std::vector<ChoiceTie> all;
    for (std::size_t choice = 0; choice < std::min(truth_.choices.size(), text_.choices.size()); ++choice) {
      const bool was_read = token < truth_.choices[choice].scores.size();
      if (!was_read || is_turned(choice, token)) continue;  // an interrupted reading is short
      std::vector<ChoiceTie> ties = ties_of(truth_.choices, choice, token, text_.choices[choice]);
      std::move(ties.begin(), ties.end(), std::back_inserter(all));
    }
    return all;
  }
  bool is_turned(std::size_t choice, std::size_t token) const {
    return std::any_of(result_.turned.begin(), result_.turned.end(), [&](const ChoiceTie& tie) {
      return tie.turned.choice == choice && tie.turned.token == token;
    });
  }

  TruthMaker& maker_;
  const BeyondText& text_;
  TruthMaker::OtherTruth truth_;
  Agreement agreement_;
  std::set<std::size_t> passed_over_;  // into the scored ones
  std::size_t tried_ = 0;
  OtherChoices result_;
};

}  // namespace

OtherChoices find_other_choices(TruthMaker& maker, const BeyondText& text) {
  return ChoiceSearch(maker, text).run();
}

}  // namespace assay::logprobs
