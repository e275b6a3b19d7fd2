#include "refimpl/models/gaussian_top.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "refimpl/ops/apart.h"

namespace assay {

// Bisection to a few digits, then Newton's steps on Φ(z) = erfc(-z / √2) / 2.
double normal_quantile(double p) {
  const auto below = [](double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; };
  double low = -40, high = 40;
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2;
    (below(middle) < p ? low : high) = middle;
  }
  double z = (low + high) / 2;
  for (int i = 0; i < 3; ++i) z -= (below(z) - p) * std::sqrt(2 * std::numbers::pi) * std::exp(z * z / 2);
  return z;
}

namespace {

Matrix top_of_rows(const Matrix& x, double sparsity, Ops& ops) {
  const auto stage = [&](double value) { return ops.arithmetic().stage(value); };
  const double quantile = ops.arithmetic().round(normal_quantile(sparsity));
  const std::size_t width = x.columns();
  const auto count = static_cast<double>(width);
  std::vector<double> values = ops.download(x);
  for (std::size_t at = 0; at < values.size(); at += width) {
    const auto row = std::span(values).subspan(at, width);
    double sum = 0, squares = 0;
    for (const double value : row) sum += value;
    const double mean = sum / count;
    for (const double value : row) squares += (value - mean) * (value - mean);
    const double cut = stage(stage(mean) + stage(stage(std::sqrt(squares / count)) * quantile));
    for (double& value : row) value = std::max(value - cut, 0.0);
  }
  return ops.upload(values, x.rows(), width);
}

}  // namespace

Matrix gaussian_top(const Matrix& x, double sparsity, Ops& ops) {
  if (auto* apart = dynamic_cast<OpsApart*>(&ops))
    return apart->on_whole_rows(x, [&](const Matrix& whole) { return top_of_rows(whole, sparsity, ops); });
  return top_of_rows(x, sparsity, ops);
}

}  // namespace assay
