// A state space in chunks (state_space.h).
#pragma once

#include <cstddef>
#include <vector>

#include "refimpl/ops/recurrent_calls.h"

namespace assay::cpu {

// What C of a token and B of those up to it in its chunk give: [tokens, across] for each group of one sequence.
struct ChunkProducts {
  ChunkProducts(const StateSpaceCall& call, const SequenceState& sequence, int jobs);
  const float* row(std::size_t group, std::size_t t) const { return &values[(group * tokens + t) * across]; }
  std::size_t tokens, across;
  std::vector<float> values;
};

// One head. `sizes`: Δ of all the call's tokens and heads; rate: exp(A_log).
struct SpaceHead32 {
  const StateSpaceCall& call;
  const SequenceState& sequence;
  const std::vector<float>& sizes;
  std::size_t head;
  float rate, skip;
};
void run_space_chunks(const SpaceHead32& head, const ChunkProducts& products, const Matrix& out);

}  // namespace assay::cpu
