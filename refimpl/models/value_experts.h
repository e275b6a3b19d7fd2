// Values by experts (K2 Horizon's MoVA): v = Σ over the chosen of weight · silu(W_e x), with a router of its own, whose bias counts
// for the choice alone.
#pragma once

#include <optional>
#include <vector>

#include "refimpl/models/weights.h"
#include "refimpl/ops/interface.h"
#include "refimpl/step/taps.h"

namespace assay {

struct ValueExperts {
  WeightView router, correction;
  std::vector<WeightView> experts;  // [kv_heads · v_dim, hidden] each
  GateRule rule;

  // None in a layer without.
  static std::optional<ValueExperts> find(const Weights& weights, std::size_t layer, const GateRule& rule);
  Matrix operator()(const Matrix& x, Ops& ops, const TapScope& at) const;  // [tokens, kv_heads · v_dim]
};

}  // namespace assay
