// What two sets of logits predict: divergence, agreement, loss.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/model_compare/logits_report.h"

namespace assay {
namespace {

constexpr std::size_t kTop = 5;

// ln softmax
std::vector<double> log_probabilities(std::span<const double> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - most);
  std::vector<double> out(logits.begin(), logits.end());
  for (double& x : out) x -= most + std::log(sum);
  return out;
}

// Places of the largest values, the largest first; of equals the first. NaN is no value.
std::vector<std::size_t> top_of(std::span<const double> values) {
  const auto value = [&](std::size_t i) {
    return std::isnan(values[i]) ? -std::numeric_limits<double>::infinity() : values[i];
  };
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t count = std::min(kTop, values.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
      [&](std::size_t a, std::size_t b) { return value(a) != value(b) ? value(a) > value(b) : a < b; });
  order.resize(count);
  return order;
}

double divergence(const std::vector<double>& p, const std::vector<double>& q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double weight = std::exp(p[i]);
    if (weight > 0) sum += weight * (p[i] - q[i]);
  }
  return sum;
}

}  // namespace

double LogitsReport::perplexity_difference() const {
  return std::exp(loss_test) - std::exp(loss_reference);
}

void LogitsTally::add(std::span<const double> reference, std::span<const double> test,
                      std::optional<TokenId> next) {
  const std::vector<double> p = log_probabilities(reference), q = log_probabilities(test);
  const double kl = divergence(p, q);
  sums_.kl_mean += kl;
  if (!(kl <= sums_.kl_max)) {
    sums_.kl_max = kl;
    sums_.kl_max_at = sums_.positions;
  }
  ++sums_.positions;
  top_ = std::min(kTop, reference.size());
  const std::vector<std::size_t> a = top_of(p), b = top_of(q);
  sums_.same_first += a.front() == b.front() ? 1 : 0;
  for (const std::size_t i : a) sums_.top5_overlap += std::count(b.begin(), b.end(), i) > 0 ? 1 : 0;
  if (!next) return;
  ++foretold_;
  const double lost = p[*next], got = q[*next];
  sums_.loss_reference -= lost;
  sums_.loss_test -= got;
  sums_.loss_difference += lost - got;
  difference_squares_ += (lost - got) * (lost - got);
}

LogitsReport LogitsTally::report() const {
  LogitsReport report = sums_;
  if (report.positions == 0) return report;
  const auto n = static_cast<double>(report.positions), m = static_cast<double>(foretold_);
  report.kl_mean /= n;
  report.same_first /= n;
  report.top5_overlap /= n * static_cast<double>(top_);
  if (foretold_ == 0) return report;
  report.loss_reference /= m;
  report.loss_test /= m;
  report.loss_difference /= m;
  const double variance = difference_squares_ / m - report.loss_difference * report.loss_difference;
  if (foretold_ > 1) report.standard_error = std::sqrt(std::max(0.0, variance) / (m - 1));
  return report;
}

}  // namespace assay
