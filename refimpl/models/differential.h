// Differential attention (arXiv 2410.05258) as DiffLlama's class has it. Heads come in two halves, and so do the key heads
// and their values; every head attends to the values of both halves, which are set beside each other, and
//
//   out = (1 - s) · norm(first half - λ · second half),   λ = exp(Σ q₁ k₁) - exp(Σ q₂ k₂) + s,   s = 0.8 - 0.6 exp(-0.3 layer)
//
// with an RMS norm without weights over each head's two vectors of values.
#pragma once

#include "refimpl/models/norms.h"

namespace assay {

class Differential {
 public:
  Differential(const Weights& weights, std::size_t layer, std::size_t v_head_dim, double epsilon);
  // `call`: of all heads. [tokens, heads · v_dim]
  Matrix operator()(const AttentionCall& call, Ops& ops) const;

 private:
  Matrix of_halves(const AttentionCall& call, std::size_t keys, std::size_t values, Ops& ops) const;

  double start_, q1k1_, q2k2_;  // s, and what is exponentiated
  Norm norm_;
};

}  // namespace assay
