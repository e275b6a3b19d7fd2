#include "kernels/logprobs/other_experts.h"

#include <algorithm>
#include <limits>

#include "core/system/threads.h"

namespace assay::logprobs {
namespace {

constexpr std::size_t kMostTried = 64;  // truths that are computed for one token
constexpr int kMostTogether = 3;        // routers that are turned for one token
constexpr double kHelps = 0.5;          // one of several that are needed leaves at most so much of the error

// How far a text agrees with a truth: up to which of its scored tokens, and how much that one is beyond.
struct Agreement {
  std::size_t first_beyond = 0;  // into the scored ones
  double ratio = 0;              // of that one
  bool better_than(const Agreement& other) const {
    return first_beyond != other.first_beyond ? first_beyond > other.first_beyond : ratio < other.ratio;
  }
};

class ExpertSearch {
 public:
  ExpertSearch(TruthMaker& maker, const BeyondText& text) : maker_(maker), text_(text) {}

  OtherExperts run() {
    truth_ = read();
    agreement_ = agreement(truth_);
    while (!interrupted() && agreement_.first_beyond < text_.scored.size() && explain_one()) {
    }
    result_.explained = agreement_.first_beyond == text_.scored.size();
    if (!result_.turned.empty() && !interrupted()) result_.tokens = std::move(truth_.tokens);
    return std::move(result_);
  }

 private:
  std::vector<TurnedRouter> turned() const {
    std::vector<TurnedRouter> all;
    for (const RouterTie& tie : result_.turned) all.push_back(tie.turned);
    return all;
  }
  TruthMaker::OtherTruth read() const { return maker_.read_otherwise(text_.ids, text_.asked, turned()); }

  Agreement agreement(const TruthMaker::OtherTruth& truth) const {
    for (std::size_t i = 0; i < text_.scored.size(); ++i) {
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

  // Turns the router that helps most: of the newest token at which one does, or else of all.
  bool turn_one() {
    std::optional<RouterTie> best;
    TruthMaker::OtherTruth with_best;
    Agreement helped = agreement_;
    result_.ties = result_.untried = 0;
    for (std::size_t token = text_.scored[agreement_.first_beyond].at;
         token-- > 0 && helped.first_beyond == agreement_.first_beyond;) {
      for (RouterTie& tie : ties_at(token)) {
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
    }
    if (!best) return false;
    result_.turned.push_back(std::move(*best));
    truth_ = std::move(with_best);
    agreement_ = helped;
    return true;
  }

  std::vector<RouterTie> ties_at(std::size_t token) const {
    std::vector<RouterTie> all;
    for (std::size_t router = 0; router < std::min(truth_.routers.size(), text_.routers.size()); ++router) {
      const bool was_read =
          (token + 1) * truth_.routers[router].experts <= truth_.routers[router].logits.size();
      if (!was_read || is_turned(router, token)) continue;  // an interrupted reading is short
      const double error = text_.routers[router].at(token);
      std::vector<RouterTie> ties = ties_of(truth_.routers, router, token, error);
      std::move(ties.begin(), ties.end(), std::back_inserter(all));
    }
    return all;
  }
  bool is_turned(std::size_t router, std::size_t token) const {
    return std::any_of(result_.turned.begin(), result_.turned.end(), [&](const RouterTie& tie) {
      return tie.turned.router == router && tie.turned.token == token;
    });
  }

  TruthMaker& maker_;
  const BeyondText& text_;
  TruthMaker::OtherTruth truth_;
  Agreement agreement_;
  std::size_t tried_ = 0;
  OtherExperts result_;
};

}  // namespace

OtherExperts find_other_experts(TruthMaker& maker, const BeyondText& text) {
  return ExpertSearch(maker, text).run();
}

}  // namespace assay::logprobs
