#include "refimpl/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {

namespace {
constexpr double kNothing = -std::numeric_limits<double>::infinity();
}

void softmax_three_pass(std::span<double> scores) {
  double maximum = kNothing;
  for (const double s : scores) maximum = std::max(maximum, s);
  if (maximum == kNothing) {
    std::fill(scores.begin(), scores.end(), 0.0);
    return;
  }
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - maximum);
  for (double& s : scores) s /= sum;
}

double OnlineSoftmax::take(double score, double& weight) {
  if (score == kNothing) {
    weight = 0;
    return 1;
  }
  const double maximum = std::max(maximum_, score);
  const double shrink = maximum_ == kNothing ? 0 : std::exp(maximum_ - maximum);
  weight = std::exp(score - maximum);
  sum_ = sum_ * shrink + weight;
  maximum_ = maximum;
  return shrink;
}

double OnlineSoftmax::log_sum_exp() const {
  return sum_ > 0 ? maximum_ + std::log(sum_) : kNothing;
}

Matrix ReferenceOps::run(const SoftmaxCall& call) {
  const Matrix& x = call.x;
  Matrix y = allocate(x.rows(), x.columns());
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    std::vector<double> row(x.columns());
    for (std::size_t r = 0; r < x.rows(); ++r) {
      std::copy_n(x.row<T>(r), x.columns(), row.begin());
      softmax_three_pass(row);
      for (std::size_t i = 0; i < row.size(); ++i)
        y.row<T>(r)[i] = static_cast<T>(arithmetic().round(row[i]));
    }
  });
  return y;
}

}  // namespace assay
