#include "kernels/model_compare/tap_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/system/error.h"
#include "core/system/text.h"
#include "kernels/model_compare/read_text.h"

namespace assay {
namespace {

double ratio(double error, double size) {
  if (error == 0) return 0;
  return size == 0 ? std::numeric_limits<double>::infinity() : error / size;
}

// Columns of every head brought from one order into the other.
std::vector<double> reordered(std::span<const double> values, const HeadOrder& order) {
  std::vector<double> out(values.begin(), values.end());
  const std::size_t d = order.head_dim;
  for (std::size_t head = 0; head + d <= values.size(); head += d) {
    for (std::size_t i = 0; i < d / 2; ++i) {
      const std::size_t halves[2] = {head + i, head + i + d / 2}, pairs[2] = {head + 2 * i, head + 2 * i + 1};
      for (int k = 0; k < 2; ++k) {
        if (order.from == RopeLayout::half_split)
          out[pairs[k]] = values[halves[k]];
        else
          out[halves[k]] = values[pairs[k]];
      }
    }
  }
  return out;
}

}  // namespace

void ErrorTotals::add(const ErrorTotals& more) {
  elements += more.elements;
  zeros += more.zeros;
  pattern_faults += more.pattern_faults;
  not_finite += more.not_finite;
  error_squares += more.error_squares;
  truth_squares += more.truth_squares;
  out_squares += more.out_squares;
  products += more.products;
  max_abs = std::max(max_abs, more.max_abs);
  if (more.worst_row_error > worst_row_error) {
    worst_row_error = more.worst_row_error;
    worst_row = more.worst_row;
  }
  if (more.row_squares > row_squares) {
    row_squares = more.row_squares;
    row_truth_squares = more.row_truth_squares;
  }
  if (column_squares.size() < more.column_squares.size()) column_squares.resize(more.column_squares.size());
  for (std::size_t i = 0; i < more.column_squares.size(); ++i) column_squares[i] += more.column_squares[i];
  for (std::size_t i = 0; i < kUlpClasses; ++i) ulps[i] += more.ulps[i];
}

double ErrorTotals::worst_column_squares() const {
  return column_squares.empty() ? 0 : *std::max_element(column_squares.begin(), column_squares.end());
}

double ErrorTotals::relative() const {
  if (pattern_faults > 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(nmse());
}

double ErrorTotals::nmse() const {
  return pattern_faults > 0 ? std::numeric_limits<double>::infinity() : ratio(error_squares, truth_squares);
}

double ErrorTotals::one_minus_cosine() const {
  if (error_squares == 0 && pattern_faults == 0) return 0;
  if (pattern_faults > 0 || truth_squares == 0 || out_squares == 0) return 1;
  return std::max(0.0, 1 - products / std::sqrt(truth_squares * out_squares));
}

double ErrorTotals::beyond_16_ulps() const {
  std::uint64_t all = 0, beyond = 0;
  for (std::size_t i = 0; i < kUlpClasses; ++i) {
    all += ulps[i];
    if (i >= 5) beyond += ulps[i];
  }
  return all == 0 ? 0 : static_cast<double>(beyond) / static_cast<double>(all);
}

ErrorTotals TapErrors::all() const {
  ErrorTotals sum = prefill;
  sum.add(decode);
  return sum;
}

ErrorTotals compare_rows(std::span<const double> out, std::span<const double> truth, std::size_t width,
                         std::size_t first_row, const Arithmetic& arithmetic) {
  ErrorTotals totals;
  const ElementType type = arithmetic.bfloat16() ? ElementType::BF16 : ElementType::F32;
  totals.column_squares.resize(width);
  if (width == 0) return totals;
  for (std::size_t first = 0; first < truth.size(); first += width) {
    ErrorTotals row;
    for (std::size_t i = first; i < first + width; ++i) {
      ++row.elements;
      if (truth[i] == 0) ++row.zeros;
      if (!std::isfinite(truth[i])) ++row.not_finite;
      if (!same_pattern(out[i], truth[i])) {
        ++row.pattern_faults;
        continue;
      }
      if (!std::isfinite(truth[i])) continue;
      const double error = std::fabs(out[i] - truth[i]);
      row.error_squares += error * error;
      totals.column_squares[i - first] += error * error;
      row.truth_squares += truth[i] * truth[i];
      row.out_squares += out[i] * out[i];
      row.products += out[i] * truth[i];
      row.max_abs = std::max(row.max_abs, error);
      if (arithmetic.storage() == Real::f32)
        ++row.ulps[ulp_class(type, static_cast<float>(out[i]), truth[i])];
    }
    row.worst_row_error = row.relative();
    row.worst_row = first_row + first / width;
    row.row_squares = row.error_squares;
    row.row_truth_squares = row.truth_squares;
    totals.add(row);
  }
  return totals;
}

void KeptTaps::see(const std::string& name, const Matrix& value) {
  bytes_ += value.rows() * value.columns() * sizeof(double);
  if (bytes_ > limit_)
    throw Error::input(fmt::format("the intermediates of so many tokens exceed {}", human_bytes(limit_)))
        .remedy("compare on fewer tokens (--limit)");
  Taken& taken = taken_[name];
  if (taken.values.empty() && taken.width == 0) names_.push_back(name);
  taken.width = value.columns();
  const std::vector<double> values = ops_.download(value);
  taken.values.insert(taken.values.end(), values.begin(), values.end());
}

const KeptTaps::Taken* KeptTaps::find(const std::string& name) const {
  const auto it = taken_.find(name);
  return it == taken_.end() ? nullptr : &it->second;
}

void ComparedTaps::see(const std::string& name, const Matrix& value) {
  if (settings_.also != nullptr) settings_.also->see(name, value);
  const KeptTaps::Taken* kept = kept_.find(name);
  std::size_t& seen = seen_[name];
  if (kept == nullptr || kept->width != value.columns() || seen + value.rows() > kept->rows())
    throw Error::input(
        fmt::format("the two sides are not one model: \"{}\" is {} wide in one, {} in the other", name,
                    kept == nullptr ? 0 : kept->width, value.columns()));
  const std::size_t width = value.columns(), count = value.rows();
  std::span<const double> truth = std::span(kept->values).subspan(seen * width, count * width);
  std::vector<double> brought;  // into this side's order; most taps have but one
  const auto order = settings_.orders.find(name);
  if (order != settings_.orders.end() && order->second.head_dim > 0)
    truth = brought = reordered(truth, order->second);
  const std::vector<double> out = ops_.download(value);
  TapErrors& errors = errors_[name];
  const std::size_t token = first_token_of(name) + settings_.first + seen;
  ErrorTotals& phase = token < settings_.prefill ? errors.prefill : errors.decode;
  phase.add(compare_rows(out, truth, width, token, ops_.arithmetic()));
  seen += count;
  if (settings_.forced && !value.empty()) ops_.store({.base = value}, 0, ops_.upload(truth, count, width));
}

}  // namespace assay
