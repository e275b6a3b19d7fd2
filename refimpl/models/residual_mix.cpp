#include "refimpl/models/residual_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/system/error.h"

namespace assay {

ResidualMix ResidualMix::read(const Weights& weights, const std::string& name) {
  ResidualMix mix{weights.find_named(name + "_norm.weight"), weights.find_named(name + "_proj.weight")};
  if (!mix.norm || !mix.score)
    throw Error::input(fmt::format("{}_norm and {}_proj are not both there", name, name))
        .in(weights.config().source());
  return mix;
}

// Rounded once, at the end, as vLLM's kernel does.
Matrix ResidualMix::operator()(std::span<const Matrix> kept, const Matrix& now, double epsilon,
                               Ops& ops) const {
  if (kept.empty()) return now;
  const std::size_t width = now.columns();
  const std::vector<double> scale = decode_vector(norm), key = decode_vector(score);
  std::vector<std::vector<double>> rows;
  for (const Matrix& row : kept) rows.push_back(ops.download(row));
  rows.push_back(ops.download(now));
  std::vector<double> mixed(now.rows() * width);
  std::vector<double> weights(rows.size());
  for (std::size_t t = 0; t < now.rows(); ++t) {
    double most = -std::numeric_limits<double>::infinity(), total = 0;
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const double* x = &rows[j][t * width];
      double product = 0, squares = 0;
      for (std::size_t c = 0; c < width; ++c) {
        product += x[c] * scale[c] * key[c];
        squares += x[c] * x[c];
      }
      weights[j] = product / std::sqrt(squares / static_cast<double>(width) + epsilon);
      most = std::max(most, weights[j]);
    }
    for (double& weight : weights) total += weight = std::exp(weight - most);
    for (std::size_t j = 0; j < rows.size(); ++j) {
      for (std::size_t c = 0; c < width; ++c)
        mixed[t * width + c] += weights[j] / total * rows[j][t * width + c];
    }
  }
  return ops.upload(mixed, now.rows(), width);
}

}  // namespace assay
