// The search behind diagnose(): explanations of TEST by REF, tried on a few tokens. Private to diagnose*.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/dumps/diagnose.h"

namespace assay::dumps {

class Search {
 public:
  // Believes what leaves at most `limit`; what leaves `noise` is not bettered.
  Search(const Activations& ref, const Activations& test, double limit, double noise)
      : ref_(ref), test_(test), limit_(limit), noise_(noise) {
    const std::size_t step = std::max<std::size_t>(1, test.rows / kTokens);
    for (std::size_t i = 0; i < test.rows && rows_.size() < kTokens; i += step) rows_.push_back(i);
  }

  const Activations& ref() const { return ref_; }
  const Activations& test() const { return test_; }
  const std::vector<std::size_t>& rows() const { return rows_; }

  // TEST[i][j] is predicted by expected(i, j). Simpler explanations are tried first, and give way only to
  // ones that leave less than half of what they do.
  template <class Expected, class Told>
  void attempt(const Expected& expected, const Told& told) {
    if (best_left_ <= noise_) return;
    const double left = remaining(expected);
    if (!(left <= limit_) || !(left < best_left_ / 2)) return;
    best_left_ = left;
    best_ = told();
    best_->left = left;
  }

  // Columns of TEST are columns of REF in another order.
  template <class Told>
  void attempt_columns(const std::vector<std::size_t>& from, const Told& told) {
    attempt([&](std::size_t i, std::size_t j) { return ref_.row(i)[from[j]]; }, told);
  }

  void offer(Diagnosis diagnosis) {
    if (best_left_ <= noise_ || !(diagnosis.left <= limit_) || !(diagnosis.left < best_left_ / 2)) return;
    best_left_ = diagnosis.left;
    best_ = std::move(diagnosis);
  }

  std::optional<Diagnosis> best() const { return best_; }

  // |TEST - expected| / |TEST| over the chosen tokens; gives up early on what explains nothing.
  template <class Expected>
  double remaining(const Expected& expected) const {
    double error = 0, size = 0;
    for (std::size_t n = 0; n < rows_.size(); ++n) {
      const std::size_t i = rows_[n];
      for (std::size_t j = 0; j < test_.width; ++j) {
        const double t = test_.row(i)[j], difference = t - expected(i, j);
        error += difference * difference;
        size += t * t;
      }
      if (n == 0 && error > 0.25 * size) return std::numeric_limits<double>::infinity();
    }
    if (std::isnan(error) || size == 0) return std::numeric_limits<double>::infinity();
    return std::sqrt(error / size);
  }

 private:
  static constexpr std::size_t kTokens = 32;
  const Activations& ref_;
  const Activations& test_;
  double limit_, noise_;
  std::vector<std::size_t> rows_;
  double best_left_ = std::numeric_limits<double>::infinity();
  std::optional<Diagnosis> best_;
};

void search_columns(Search& search);  // heads and rotary pairs

}  // namespace assay::dumps
