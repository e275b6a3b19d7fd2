#include "refimpl/fingerprint/singular_values.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "core/system/threads.h"

namespace assay {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr int kMostSweeps = 60;
constexpr std::size_t kWorthThreads = 256;  // columns: of fewer, threads cost more than they save

DenseMatrix transposed(const DenseMatrix& a) {
  DenseMatrix t(a.columns(), a.rows());
  for (std::size_t j = 0; j < a.columns(); ++j)
    for (std::size_t i = 0; i < a.rows(); ++i) t.at(j, i) = a.at(i, j);
  return t;
}

// y += f · x
void add_scaled(std::span<double> y, double f, std::span<const double> x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += f * x[i];
}

// A with rows ≥ columns becomes R above its diagonal; columns are exchanged so that the diagonal falls.
class PivotedQr {
 public:
  PivotedQr(DenseMatrix& a, int jobs) : a_(a), jobs_(jobs), left_(a.columns()) {
    for (std::size_t j = 0; j < a.columns(); ++j) left_[j] = dot(a.column(j), a.column(j));
    for (std::size_t k = 0; k < a.columns(); ++k) step(k);
  }

 private:
  void step(std::size_t k) {
    const auto largest = std::max_element(left_.begin() + static_cast<std::ptrdiff_t>(k), left_.end());
    exchange(k, static_cast<std::size_t>(largest - left_.begin()));
    // v = x + sign(x₀)‖x‖e₀;  H = I − 2vvᵀ/(vᵀv)
    const std::span<double> x = a_.column(k).subspan(k);
    const double norm = std::sqrt(dot(x, x));
    if (norm == 0) return;
    const double first = x[0] > 0 ? -norm : norm;
    std::vector<double> v(x.begin(), x.end());
    v[0] -= first;
    const double factor = -2 / dot(v, v);
    std::fill(x.begin(), x.end(), 0);
    x[0] = first;
    const std::size_t behind = k + 1;
    parallel_for(jobs_, a_.columns() - behind, [&](std::size_t i) {
      const std::span<double> column = a_.column(behind + i).subspan(k);
      add_scaled(column, factor * dot(v, column), v);
      left_[behind + i] = dot(column.subspan(1), column.subspan(1));
    });
  }
  void exchange(std::size_t k, std::size_t other) {
    if (k == other) return;
    std::swap_ranges(a_.column(k).begin(), a_.column(k).end(), a_.column(other).begin());
    std::swap(left_[k], left_[other]);
  }

  DenseMatrix& a_;
  int jobs_;
  std::vector<double> left_;  // ‖column‖² below the rows that are done
};

// One rotation; false: the two are orthogonal already.
bool make_orthogonal(std::span<double> a, std::span<double> b) {
  const double alpha = dot(a, a), beta = dot(b, b), gamma = dot(a, b);
  if (!(std::abs(gamma) > kEps * std::sqrt(static_cast<double>(a.size()) * alpha * beta))) return false;
  const double zeta = (beta - alpha) / (2 * gamma);
  const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
  const double c = 1 / std::hypot(1.0, t), s = c * t;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double was = a[i];
    a[i] = c * was - s * b[i];
    b[i] = s * was + c * b[i];
  }
  return true;
}

// Every pair once, in rounds of pairs that share no column (the circle method of tournaments).
bool sweep(DenseMatrix& a, int jobs) {
  const std::size_t n = a.columns(), seats = n + n % 2;
  std::atomic<bool> turned = false;
  for (std::size_t round = 0; round + 1 < seats; ++round)
    parallel_for(jobs, seats / 2, [&](std::size_t i) {
      const auto seat = [&](std::size_t k) { return k == 0 ? 0 : 1 + (k - 1 + round) % (seats - 1); };
      const std::size_t one = seat(i), other = seat(seats - 1 - i);
      const auto [p, q] = std::minmax(one, other);
      if (q < n && make_orthogonal(a.column(p), a.column(q))) turned = true;
    });
  return turned;
}

}  // namespace

double dot(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= a.size(); i += kSums)
    for (std::size_t k = 0; k < kSums; ++k) sums[k] += a[i + k] * b[i + k];
  for (; i < a.size(); ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// Columns of A V = U Σ, and V's as Aᵀ u / σ.
LeadingVectors leading_vectors(const DenseMatrix& a, std::size_t count, int jobs) {
  DenseMatrix turned = a;
  for (int i = 0; i < kMostSweeps && sweep(turned, a.columns() < kWorthThreads ? 1 : jobs); ++i) {
  }
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t j = 0; j < turned.columns(); ++j)
    order.emplace_back(-std::sqrt(dot(turned.column(j), turned.column(j))), j);
  std::sort(order.begin(), order.end());
  LeadingVectors lead{DenseMatrix(a.rows(), count), DenseMatrix(a.columns(), count)};
  for (std::size_t r = 0; r < count; ++r) {
    const double sigma = -order[r].first;
    for (std::size_t i = 0; i < a.rows(); ++i) lead.left.at(i, r) = turned.column(order[r].second)[i] / sigma;
    for (std::size_t j = 0; j < a.columns(); ++j)
      lead.right.at(j, r) = dot(a.column(j), lead.left.column(r)) / sigma;
  }
  return lead;
}

std::vector<double> singular_values(DenseMatrix a, int jobs) {
  if (a.rows() < a.columns()) a = transposed(a);
  const std::size_t n = a.columns();
  const int threads = n < kWorthThreads ? 1 : jobs;
  PivotedQr(a, threads);
  DenseMatrix rows_of_r(n, n);
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i <= j; ++i) rows_of_r.at(j, i) = a.at(i, j);
  for (int i = 0; i < kMostSweeps && sweep(rows_of_r, threads) && !interrupted(); ++i) {
  }
  std::vector<double> values(n);
  for (std::size_t j = 0; j < n; ++j) values[j] = std::sqrt(dot(rows_of_r.column(j), rows_of_r.column(j)));
  std::sort(values.begin(), values.end(), std::greater<>());
  return values;
}

}  // namespace assay
