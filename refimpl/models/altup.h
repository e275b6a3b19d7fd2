// Alternating updates (AltUp, arXiv 2301.13310), as Gemma 3n has them: of n streams a layer computes one, and guesses
// before and corrects behind it what all of them are. With r(x) = tanh(router(norm(x) / hidden)), n numbers a token,
//
//   guessed_k   = x_k + Σ_j x_j · (prediction r(x_active))[k n + j]
//   corrected_k = guessed_k + (made - guessed_active) · ((correction r(made))[k] + 1)
//
// The streams begin as one, and projections of it made as long; behind the last layer their mean is one again.
#pragma once

#include <vector>

#include "refimpl/models/norms.h"

namespace assay {

using Streams = std::vector<Matrix>;  // [tokens, hidden] each

class AltUp {
 public:
  // `path`: "model.layers.3.altup.". Throws Error::input where a tensor is absent.
  static AltUp read(const Weights& weights, const std::string& path, std::size_t active,
                    const NormRule& rule);

  Streams guess(const Streams& x, Ops& ops) const;
  Streams correct(const Streams& guessed, const Matrix& made, Ops& ops) const;
  Matrix scaled(const Matrix& x, Ops& ops) const;  // by a number a column

 private:
  std::vector<double> coefficients(const Matrix& x, const WeightView& of, Ops& ops) const;

  WeightView router_, prediction_, correction_;
  std::vector<double> output_scale_;
  Norm norm_;
  std::size_t active_ = 0;
};

// Which matrices make the other streams, or take them back: "model.altup_projections.0.weight" and so on.
std::vector<WeightView> stream_projections(const Weights& weights, const std::string& path);
// x, and what each projection makes of it, as long as it.
Streams spread(const Matrix& x, const std::vector<WeightView>& projections, Ops& ops);
// The mean of the first and what each projection makes of its own, as long as the first.
Matrix gathered(const Streams& x, const std::vector<WeightView>& projections, Ops& ops);

}  // namespace assay
