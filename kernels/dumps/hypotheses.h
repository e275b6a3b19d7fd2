// The search behind diagnose(): explanations of TEST by REF, tried on a few tokens. Private to diagnose*.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
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
    if (step > 1) add_worst_rows();
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
    if (!believes(left) || !(left < best_left_ / 2)) return;
    best_left_ = left;
    best_ = told();
    best_->left = left;
  }

  // Columns of TEST are columns of REF in another order.
  template <class Told>
  void attempt_columns(const std::vector<std::size_t>& from, const Told& told) {
    attempt([&](std::size_t i, std::size_t j) { return ref_.row(i)[from[j]]; }, told);
  }

  bool believes(double left) const { return left <= limit_; }

  void offer(Diagnosis diagnosis) {
    if (best_left_ <= noise_ || !believes(diagnosis.left) || !(diagnosis.left < best_left_ / 2)) return;
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
  static constexpr std::size_t kTokens = 32, kWorstTokens = 8;

  // What is wrong in tokens between those must be explained, too.
  void add_worst_rows() {
    std::vector<std::pair<double, std::size_t>> errors;  // -|TEST - REF|² of each row
    for (std::size_t i = 0; i < test_.rows; ++i) {
      double error = 0;
      for (std::size_t j = 0; j < test_.width; ++j) {
        const double difference = test_.row(i)[j] - ref_.row(i)[j];
        error += difference * difference;
      }
      if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
      if (error > 0) errors.emplace_back(-error, i);
    }
    const std::size_t count = std::min(kWorstTokens, errors.size());
    std::partial_sort(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(count), errors.end());
    for (std::size_t k = 0; k < count; ++k) {
      if (std::find(rows_.begin(), rows_.end(), errors[k].second) == rows_.end())
        rows_.push_back(errors[k].second);
    }
  }

  const Activations& ref_;
  const Activations& test_;
  double limit_, noise_;
  std::vector<std::size_t> rows_;
  double best_left_ = std::numeric_limits<double>::infinity();
  std::optional<Diagnosis> best_;
};

void search_columns(Search& search);   // heads and rotary pairs
void search_elements(Search& search);  // a few single ones

}  // namespace assay::dumps
