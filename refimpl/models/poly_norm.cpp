#include "refimpl/models/poly_norm.h"

#include <cmath>

namespace assay {

PolyNorm PolyNorm::read(const Weights& weights, std::size_t layer) {
  WeightKey key = {.role = Role::layer_scale, .part = Part::dense_mlp, .layer = layer};
  const std::vector<double> powers = decode_vector(weights.get(key));
  key.bias = true;
  return {{powers.at(0), powers.at(1), powers.at(2)}, decode_vector(weights.get(key)).at(0)};
}

Matrix PolyNorm::operator()(const Matrix& x, Ops& ops) const {
  constexpr double kEpsilon = 1e-6;
  std::vector<double> values = ops.download(x);
  const std::size_t width = x.columns();
  for (std::size_t row = 0; row < x.rows(); ++row) {
    double* const of = values.data() + row * width;
    std::array<double, 3> sums = {};
    for (std::size_t i = 0; i < width; ++i) {
      const double square = of[i] * of[i];
      sums[0] += square * square * square, sums[1] += square * square, sums[2] += square;
    }
    std::array<double, 3> factors;
    for (std::size_t n = 0; n < 3; ++n)
      factors[n] = weights[n] / std::sqrt(sums[n] / static_cast<double>(width) + kEpsilon);
    for (std::size_t i = 0; i < width; ++i)
      of[i] = of[i] * (factors[2] + of[i] * (factors[1] + of[i] * factors[0])) + bias;
  }
  return ops.upload(values, x.rows(), width);
}

}  // namespace assay
