// Choices near a tie: those that turn where their scores are off by no more than rounding makes them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/logprobs/choices.h"

namespace assay::logprobs {

struct ChoiceTie {
  TurnedChoice turned;  // with the scores with which it just turns
  ChoiceKind kind = ChoiceKind::experts;
  std::string name;  // "layers.1"
  // Experts or keys that are chosen no longer, and those in their place.
  std::vector<std::int32_t> left, taken;
  double moved = 0;       // by how much, at most, any of its scores
  double error = 0;       // and by how much it may be off
  bool as_plain = false;  // the plain computation itself chose so
};

// Other choices of one router or indexer at one token that errors.at(token) in each of its scores may make: the plain computation's own,
// and all of one for another (of keys the nearest 64), and, where experts are chosen by groups, of one group for another. The nearest first.
std::vector<ChoiceTie> ties_of(std::span<const WatchedChoice> choices, std::size_t choice, std::size_t token,
                               const ChoiceErrors& errors);

// "layers.1, token 7: expert 5 in place of 3 (a tie is 0.0012 away, and logits may be off by 0.004)"
std::string describe_tie(const ChoiceTie& tie);

}  // namespace assay::logprobs
