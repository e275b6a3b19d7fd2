// Gemma 3n's sparse gates: of a layer's gates, taken for draws from one normal distribution, those above its quantile of
// `sparsity` stay, less that quantile.
//
//   max(x - (mean + deviation · Φ⁻¹(sparsity)), 0)         of each row; Φ⁻¹(0.95) = 1.6448…
#pragma once

#include "refimpl/ops/interface.h"

namespace assay {

double normal_quantile(double p);  // Φ⁻¹, 0 < p < 1
Matrix gaussian_top(const Matrix& x, double sparsity, Ops& ops);

}  // namespace assay
