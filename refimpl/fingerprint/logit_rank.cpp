#include "refimpl/fingerprint/logit_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "refimpl/fingerprint/singular_values.h"

namespace assay {
namespace {

constexpr double kGap = 3;             // of F, see logit_rank.h
constexpr double kBf16 = 0x1p-8;       // unit roundoff
constexpr double kSurely = 6.4378;     // √(2 ln 10⁹)
constexpr double kQuarter = 0.1978;    // (asin x + x √(1 − x²)) 2/π = 1/4
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
  double sigma = 0, floor = 0;
};
Tail tail_of(const Spectrum& s, std::size_t rank, double squares, double zero) {
  const double n = static_cast<double>(s.contexts), m = static_cast<double>(s.tokens),
               r = static_cast<double>(rank);
  const double sigma = std::sqrt(squares / ((n - r) * (m - r)));
  const EntrySizes& z = s.sizes;
  const double reach = z.rows_most * std::sqrt(m) + z.columns_most * std::sqrt(n) + kSurely * z.largest;
  return {sigma, std::max(sigma * reach, zero)};
}

bool is_rounding(const Spectrum& s, std::size_t rank, const Tail& tail, double zero) {
  const double next = s.values[rank];
  if (next <= zero) return true;
  const double n = static_cast<double>(s.contexts - rank), m = static_cast<double>(s.tokens - rank);
  const double quarter = s.values[rank + (s.values.size() - rank) * 3 / 4];
  const double least = s.sizes.rows_least * s.sizes.columns_least / 2;
  return tail.sigma <= std::max(kBf16 * s.rms, s.sizes.told_step) && next <= tail.floor &&
         quarter >= kQuarter * tail.sigma * (std::sqrt(n) + std::sqrt(m)) * least;
}

bool all_are(const DenseMatrix& table, const std::function<bool(double)>& such) {
  for (std::size_t j = 0; j < table.columns(); ++j)
    for (std::size_t i = 0; i < table.rows(); ++i)
      if (!such(table.at(i, j))) return false;
  return true;
}

bool is_bfloat16(double value) {
  const auto narrow = static_cast<float>(value);
  return narrow == value && (std::bit_cast<std::uint32_t>(narrow) & 0xffff) == 0;
}

// Half a step where all values are of few decimals, or of bfloat16.
double told_step_of(const DenseMatrix& table, double rms) {
  if (all_are(table, [](double x) { return x == 0 || is_bfloat16(x); })) return kBf16 * rms;
  double digit = 0.1;
  for (int decimals = 1; decimals <= 4; ++decimals, digit /= 10) {
    const auto few = [&](double x) { return std::abs(x / digit - std::nearbyint(x / digit)) < 1e-6; };
    if (all_are(table, few)) return digit / 2;
  }
  return 0;
}

EntrySizes sizes_of(const DenseMatrix& table) {
  const double rows = static_cast<double>(table.rows()), columns = static_cast<double>(table.columns());
  std::vector<double> of_rows(table.rows()), of_columns(table.columns());
  EntrySizes sizes;
  double all = 0, largest = 0;
  for (std::size_t j = 0; j < table.columns(); ++j) {
    for (std::size_t i = 0; i < table.rows(); ++i) {
      const double x = table.at(i, j);
      of_rows[i] += x * x / columns;
      of_columns[j] += x * x / rows;
      largest = std::max(largest, std::abs(x));
    }
    all += of_columns[j] / columns;
  }
  if (!(all > 0)) return sizes;
  const auto [least_row, most_row] = std::minmax_element(of_rows.begin(), of_rows.end());
  const auto [least_column, most_column] = std::minmax_element(of_columns.begin(), of_columns.end());
  return {.rows_most = std::sqrt(*most_row / all),
          .rows_least = std::sqrt(*least_row / all),
          .columns_most = std::sqrt(*most_column / all),
          .columns_least = std::sqrt(*least_column / all),
          .largest = largest / std::sqrt(all),
          .told_step = told_step_of(table, std::sqrt(all))};
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
  const EntrySizes sizes = sizes_of(table);
  if (rows) subtract_row_means(table);
  if (columns) subtract_column_means(table);
  Spectrum s{table.rows() - (columns ? 1 : 0), table.columns() - (rows ? 1 : 0), 0, sizes, {}};
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
    const Tail tail = tail_of(s, rank, tails[rank], zero);
    if (!(s.values[rank - 1] >= kGap * tail.floor) || !is_rounding(s, rank, tail, zero)) continue;
    return {rank, s.values[rank - 1], s.values[rank], tail.floor, tail.sigma, ""};
  }
  found.why = fmt::format(
      "{} singular values of {} vectors and {} tokens fall without a gap behind which there is only "
      "rounding",
      s.values.size(), s.contexts, s.tokens);
  return found;
}

}  // namespace assay
