// Logits behind a soft cap, c tanh(z / c) as in Gemma 2 and 3n, have every rank. The cap is found by it: there is one c, and one constant for
// each vector (which the softmax took), with which z = c atanh((ln p + s) / c) has a rank.
//
// Gauss and Newton on what lies outside the best approximation of rank r (Golub, Pereyra: "The differentiation of pseudo-inverses and
// nonlinear least squares problems whose variables separate", SIAM J. Numer. Anal. 10, 1973), r being where the singular values
// fall most. It converges quadratically, or there is no cap.
#pragma once

#include <optional>

#include "refimpl/fingerprint/dense_matrix.h"

namespace assay {

struct Uncapped {
  double cap = 0;
  DenseMatrix logits;  // as they were before, contexts × tokens; nothing of them is unknown
};
// `table`: ln p, contexts × tokens. `rank`: where its singular values fall most. None: no cap makes its rank smaller than it is.
std::optional<Uncapped> remove_soft_cap(const DenseMatrix& table, std::size_t rank, int jobs);

}  // namespace assay
