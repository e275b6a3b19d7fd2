// What the delta rule reads, as it computes with it: of each token and head.
#pragma once

#include <vector>

#include "refimpl/ops/recurrent_calls.h"

namespace assay::cpu {

struct DeltaInputs {
  // `log`, `bias`: the weights, decoded; the shapes are checked.
  DeltaInputs(const DeltaRuleCall& call, const std::vector<double>& log, const std::vector<double>& bias,
              int jobs);

  std::size_t keys, decays, heads;  // columns of q and k, of the decays, of β
  std::size_t channels;             // decays of a head: 1, or one for each row of its state
  std::vector<float> q, k;          // [tokens, keys]: of length 1, q times the scale
  std::vector<float> decay;         // [tokens, decays]: g
  std::vector<float> beta;          // [tokens, heads]: σ of it, scaled
};

}  // namespace assay::cpu
