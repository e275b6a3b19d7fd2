// Differential attention (arXiv 2410.05258) as DiffLlama's class has it. Heads come in two halves, and so do the key heads
// and their values; every head attends to the values of both halves, which are set beside each other, and
//
//   out = (1 - s) · norm(first half - λ · second half),   λ = exp(Σ q₁ k₁) - exp(Σ q₂ k₂) + s,   s = 0.8 - 0.6 exp(-0.3 layer)
//
// with an RMS norm without weights over each head's two vectors of values. Motif's heads come in pairs instead, its layers are
// counted from -1 on, and its norm has weights. Source: vLLM 0.10's motif.py and differential_flash_attn.py.
#pragma once

#include "refimpl/models/norms.h"

namespace assay {

struct DifferentialForm {
  bool pairs = false;  // Motif
  double epsilon = 0;  // of its norm
};

class Differential {
 public:
  // `epsilon`: of the other norms, and of DiffLlama's.
  Differential(const Weights& weights, std::size_t layer, std::size_t v_head_dim, double epsilon,
               const DifferentialForm& form);
  // `call`: of all heads. [tokens, heads · v_dim]
  Matrix operator()(const AttentionCall& call, Ops& ops) const;

 private:
  Matrix of_halves(const AttentionCall& call, std::size_t keys, std::size_t values, Ops& ops) const;
  // Of rows of so many vectors those of one half, or the first or second of each pair.
  Matrix half_of(const Matrix& rows, std::size_t half, std::size_t vectors, std::size_t width,
                 Ops& ops) const;

  bool pairs_;
  double start_, q1k1_, q2k2_;  // s, and what is exponentiated
  Norm norm_;
};

}  // namespace assay
