// Inkling's attention: a score is scale · q·k and a bias of the distance, a product of what the query says of distances
// with a profile for each:
//
//   bias[d] = τ · Σᵢ r[i] · profile[i, d], 0 ≤ d < extent, else 0;   r = r_proj x, one a head
//   τ = 1 + alpha · ln(max(1, (position + 1) / floor)) where all is seen, by which queries are scaled too, else 1
//
// Nothing rotates. Keys and values pass a convolution before they are normed and kept.
// Source: transformers 5.23 (inkling).
#pragma once

#include <optional>

#include "refimpl/models/projection.h"
#include "refimpl/models/residual_convolution.h"

namespace assay {

struct RelativeForm {
  double floor = 0;    // log_scaling_n_floor; 0: τ is 1
  double alpha = 0.1;  // log_scaling_alpha
};

class RelativeAttention {
 public:
  RelativeAttention(const Weights& weights, std::size_t layer, const AttentionGeometry& geometry,
                    const RelativeForm& form);

  std::vector<StateShape> states() const { return {keys_.state(), values_.state()}; }
  Matrix keys(const Matrix& k, const Batch& batch, Ops& ops) const { return keys_(k, layer_, batch, ops); }
  Matrix values(const Matrix& v, const Batch& batch, Ops& ops) const {
    return values_(v, layer_, batch, ops);
  }
  Matrix warmed(const Matrix& q, const Batch& batch, Ops& ops) const;  // × τ
  Matrix relative(const Matrix& x, Ops& ops) const { return projection_(x, ops); }
  // [tokens, heads · v_dim]; no kernel knows the bias.
  Matrix operator()(const AttentionCall& call, const Matrix& relative, Ops& ops) const;

 private:
  double tau(std::size_t position) const;

  std::size_t layer_;
  bool windowed_;
  RelativeForm form_;
  Projection projection_;
  WeightView profile_;  // [d_rel, extent], as x · profile
  ResidualConvolution keys_, values_;
};

}  // namespace assay
