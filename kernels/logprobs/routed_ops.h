// Routers while a text is read: what they said and whom they chose; a truth in which some of them choose otherwise; and how far from the
// truth's logits the plain computation's are.
//
// A choice is no sum: where two experts' scores are nearer to each other than rounding, one computation takes this one and another that
// one, and what they say differs by as much as the experts do. So what rounding does to sums is measured where the plain computation
// chose as the truth did (RouterErrors; PlainError::turned in truth.h), and of a router near a tie both choices are computed
// (router_ties.h).
#pragma once

#include <string>
#include <vector>

#include "kernels/model_compare/passing_ops.h"
#include "refimpl/step/taps.h"

namespace assay::logprobs {

// One router: of every token its scores' inputs and the experts it chose, best first.
struct WatchedRouter {
  std::string name;  // "layers.1"
  WeightView correction;
  GateRule rule;
  std::size_t experts = 0;
  std::vector<double> logits;        // [tokens, experts]
  std::vector<std::int32_t> chosen;  // [tokens, top_k]
  std::span<const double> row(std::size_t token) const {
    return std::span(logits).subspan(token * experts, experts);
  }
  std::span<const std::int32_t> choice(std::size_t token) const {
    return std::span(chosen).subspan(token * rule.top_k, rule.top_k);
  }
};

// How far a router's logits are from the truth's in the plain computation, of tokens of which no router before chose otherwise. What an
// engine's may be off is what a token may be (judge.h): twice the largest of the text, six times this token's root mean square.
struct RouterErrors {
  double largest = 0;
  struct OfToken {
    double squares = 0;  // of all experts, in all orders
    std::size_t count = 0;
  };
  std::vector<OfToken> tokens;
  double at(std::size_t token) const;
};

// A router that is to choose otherwise for one token: its logits are moved so, or as many times so as it takes.
struct TurnedRouter {
  std::size_t router = 0, token = 0;
  std::vector<double> move;           // [experts]
  std::vector<std::int32_t> experts;  // whom it chooses then, in order of their numbers
};

// Experts from one row of logits, in float64.
Routing choose_experts(const WatchedRouter& router, std::span<const double> logits);

// Hands all on to `inner`, and looks after routers. Both it and its taps go to the reader of one text of `tokens` tokens.
class RoutedOps final : public PassingOps, public TapListener {
 public:
  RoutedOps(Ops& inner, std::size_t tokens) : PassingOps(inner), tokens_(tokens) {}

  // What routers say goes there.
  void record(std::vector<WatchedRouter>& routers) { record_ = &routers; }
  void turn_routers(std::span<const TurnedRouter> turned) { turned_ = turned; }
  // Held against these, who have read as far; the errors of logits are added to `errors`.
  void hold_against(const std::vector<WatchedRouter>& routers, std::vector<RouterErrors>& errors) {
    truth_ = &routers, errors_ = &errors;
  }
  // Some router chose otherwise for that token.
  bool turned(std::size_t token) const { return token < turned_tokens_.size() && turned_tokens_[token]; }

  void see(const std::string& tap, const Matrix&) override;
  void step(std::span<const std::uint32_t> tokens) override;
  using PassingOps::run;
  Routing run(const MoeGateCall& call) override;

 private:
  Matrix turned_logits(const MoeGateCall& call);
  void keep(const MoeGateCall& call, const Routing& routing);
  void compare(const MoeGateCall& call, const Routing& routing);

  std::size_t tokens_, first_ = 0, next_ = 0, router_ = 0;
  std::string name_;
  std::vector<WatchedRouter>* record_ = nullptr;
  std::span<const TurnedRouter> turned_;
  const std::vector<WatchedRouter>* truth_ = nullptr;
  std::vector<RouterErrors>* errors_ = nullptr;
  std::vector<bool> turned_tokens_;
};

}  // namespace assay::logprobs
