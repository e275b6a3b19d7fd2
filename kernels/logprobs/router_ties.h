// Routers near a tie: whose choice of experts turns where their logits are off by no more than rounding makes them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/logprobs/routed_ops.h"

namespace assay::logprobs {

struct RouterTie {
  TurnedRouter turned;                    // with the logits with which it just turns
  std::string router;                     // "layers.1"
  std::vector<std::int32_t> left, taken;  // experts that are chosen no longer, and those in their place
  double moved = 0;                       // by how much, at most, any of its logits
  double error = 0;                       // and by how much it may be off
};

// All other choices of one router at one token that `error` in each of its logits may make: one expert for another, and, where experts
// are chosen by groups, one group for another. The nearest first.
std::vector<RouterTie> ties_of(std::span<const WatchedRouter> routers, std::size_t router, std::size_t token,
                               double error);

// "layers.1, token 7: expert 5 in place of 3 (a tie is 0.0012 away, and logits may be off by 0.004)"
std::string describe_tie(const RouterTie& tie);

}  // namespace assay::logprobs
