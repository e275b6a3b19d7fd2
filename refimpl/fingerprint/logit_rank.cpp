#include "refimpl/fingerprint/logit_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "refimpl/fingerprint/singular_values.h"

namespace assay {
namespace {

// The last singular value that counts stands so many times above the next, and above what noise would have.
constexpr double kGap = 3;
// What is left has to look like noise: independent entries of one size have singular values up to σ(√n + √m) and, of n = m,
// a quarter of them below a fifth of that (Marchenko, Pastur 1967). Rounding of unequal entries is allowed four times as much.
constexpr double kNoiseReach = 4, kNoiseQuarter = 0.02;
// Of an entry, relative to all: half a step of bfloat16 (8 bits) is 2⁻⁹ of the largest, which may be 4 times the root mean square.
// What is larger is no rounding.
constexpr double kMostNoise = 0x1p-7;
constexpr std::size_t kLeastLeft = 4;  // singular values: fewer show no noise

// Sums of squares of values[r …].
std::vector<double> tails_of(const std::vector<double>& values) {
  std::vector<double> tails(values.size() + 1);
  for (std::size_t r = values.size(); r-- > 0;) tails[r] = tails[r + 1] + values[r] * values[r];
  return tails;
}

// What float64 leaves of a zero.
double zero_of(const Spectrum& s) {
  constexpr double kEps = std::numeric_limits<double>::epsilon();
  const double largest = s.values.empty() ? 0 : s.values.front();
  return 8 * kEps * largest * std::sqrt(static_cast<double>(std::max(s.contexts, s.tokens)));
}

struct Tail {
  double sigma = 0, reach = 0;
};
Tail tail_of(const Spectrum& s, std::size_t rank, double squares) {
  const double n = static_cast<double>(s.contexts - rank), m = static_cast<double>(s.tokens - rank);
  const double sigma = std::sqrt(squares / (n * m));
  return {sigma, sigma * (std::sqrt(n) + std::sqrt(m))};
}

bool is_noise(const Spectrum& s, std::size_t rank, const Tail& tail, double zero) {
  const double next = s.values[rank];
  if (next <= zero) return true;
  const double quarter = s.values[rank + (s.values.size() - rank) * 3 / 4];
  return tail.sigma <= kMostNoise * s.rms && next <= kNoiseReach * tail.reach &&
         quarter >= kNoiseQuarter * tail.reach;
}

void subtract_column_means(DenseMatrix& table) {
  for (std::size_t j = 0; j < table.columns(); ++j) {
    const std::span<double> column = table.column(j);
    double sum = 0;
    for (const double value : column) sum += value;
    for (double& value : column) value -= sum / static_cast<double>(table.rows());
  }
}

void subtract_row_means(DenseMatrix& table) {
  std::vector<double> sums(table.rows());
  for (std::size_t j = 0; j < table.columns(); ++j)
    for (std::size_t i = 0; i < table.rows(); ++i) sums[i] += table.at(i, j);
  for (std::size_t j = 0; j < table.columns(); ++j)
    for (std::size_t i = 0; i < table.rows(); ++i)
      table.at(i, j) -= sums[i] / static_cast<double>(table.columns());
}

}  // namespace

Spectrum spectrum_of(DenseMatrix table, Means means, int jobs) {
  const bool rows = means == Means::of_rows || means == Means::of_both;
  const bool columns = means == Means::of_columns || means == Means::of_both;
  if (rows) subtract_row_means(table);
  if (columns) subtract_column_means(table);
  Spectrum s{table.rows() - (columns ? 1 : 0), table.columns() - (rows ? 1 : 0), 0, {}};
  double squares = 0;
  for (std::size_t j = 0; j < table.columns(); ++j) squares += dot(table.column(j), table.column(j));
  s.rms = std::sqrt(squares / static_cast<double>(table.rows() * table.columns()));
  s.values = singular_values(std::move(table), jobs);
  s.values.resize(std::min({s.values.size(), s.contexts, s.tokens}));
  return s;
}

RankFound find_rank(const Spectrum& s) {
  const std::vector<double> tails = tails_of(s.values);
  const double zero = zero_of(s);
  RankFound found;
  if (s.values.empty() || !(s.values.front() > 0)) {
    found.why = "all vectors are the same";
    return found;
  }
  for (std::size_t rank = s.values.size(); rank-- > 1;) {
    if (s.values.size() - rank < kLeastLeft) continue;
    const Tail tail = tail_of(s, rank, tails[rank]);
    const double floor = std::max(tail.reach, zero);
    if (!(s.values[rank - 1] >= kGap * std::max(s.values[rank], floor)) || !is_noise(s, rank, tail, zero))
      continue;
    return {rank, s.values[rank - 1], s.values[rank], floor, tail.sigma, ""};
  }
  found.why = fmt::format(
      "{} singular values of {} vectors and {} tokens fall without a gap behind which there is only "
      "rounding",
      s.values.size(), s.contexts, s.tokens);
  return found;
}

}  // namespace assay
