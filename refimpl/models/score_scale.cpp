#include "refimpl/models/score_scale.h"

#include <cmath>

namespace assay {

Matrix ScoreScale::operator()(const Matrix& q, const Batch& batch, Ops& ops) const {
  const std::vector<double> s = decode_vector(scale), b = decode_vector(bias);
  std::vector<double> factors;
  for (const std::size_t position : batch.positions) {
    const double log = std::log1p(static_cast<double>(position));
    for (std::size_t h = 0; h < s.size(); ++h) factors.push_back(s[h] * log + b.at(h));
  }
  return ops.scale(q, ops.upload(factors, batch.positions.size(), s.size()));
}

}  // namespace assay
