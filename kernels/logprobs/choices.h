// What a model chooses while it reads: experts by its routers, keys to attend to by its indexers; and how far from the
// truth's scores the plain computation's are.
//
// A choice is no sum: where two scores are nearer to each other than rounding, one computation takes this one and
// another that one, and what they say differs by as much as the experts or the keys do. So what rounding does to sums is
// measured where the plain computation chose as the truth did (ChoiceErrors; PlainError::turned in truth.h), and of a
// choice near a tie both are computed (choice_ties.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "refimpl/ops/calls.h"
#include "refimpl/ops/index_calls.h"

namespace assay::logprobs {

enum class ChoiceKind : std::uint8_t { experts, keys };

// Whom one row of scores chooses, in float64, in order of their numbers.
using Chooser = std::function<std::vector<std::int32_t>(std::span<const double> scores)>;
Chooser chooser_of_experts(const WeightView& correction, const GateRule& rule);
Chooser chooser_of_keys(std::size_t top_k);

// One router or indexer: of every token what it chose by, and whom it chose.
struct WatchedChoice {
  ChoiceKind kind = ChoiceKind::experts;
  std::string name;  // "layers.1"
  Chooser choose;
  std::size_t groups = 1;  // of experts
  // By token: logits of all experts, or scores of the keys that it may see; none where it takes all of these.
  std::vector<std::vector<double>> scores;
  std::vector<std::vector<std::int32_t>> chosen;  // in order of their numbers
};

// How far the scores are from the truth's in the plain computation, of tokens of which no choice before was another. What
// an engine's may be off is what a token may be (judge.h): twice the largest of the text, six times this token's root
// mean square.
struct ChoiceErrors {
  ChoiceKind kind = ChoiceKind::experts;
  double largest = 0;
  struct Turned {
    std::vector<double> move;  // its scores less the truth's
    std::vector<std::int32_t> chosen;
  };
  struct OfToken {
    double squares = 0;  // of all scores, in all orders
    std::size_t count = 0;
    std::vector<Turned> turned;  // its own choices that were others: the first of that token in an order
  };
  std::vector<OfToken> tokens;
  double at(std::size_t token) const;
};

// A choice that is to be another for one token: its scores are moved so, or as many times so as it takes.
struct TurnedChoice {
  std::size_t choice = 0, token = 0;
  std::vector<double> move;          // of each score
  std::vector<std::int32_t> chosen;  // whom it chooses then
};

}  // namespace assay::logprobs
