// What two sets of logits foretell: divergence, agreement, loss.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/harness/model_compare.h"

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

LogitsReport compare_logits(std::span<const double> reference, std::span<const double> test,
                            std::span<const TokenId> tokens, std::size_t vocabulary) {
  LogitsReport report;
  double difference_squares = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const std::vector<double> p = log_probabilities(reference.subspan(t * vocabulary, vocabulary));
    const std::vector<double> q = log_probabilities(test.subspan(t * vocabulary, vocabulary));
    const double kl = divergence(p, q);
    ++report.positions;
    report.kl_mean += kl;
    if (!(kl <= report.kl_max)) {
      report.kl_max = kl;
      report.kl_max_at = t;
    }
    const std::vector<std::size_t> a = top_of(p), b = top_of(q);
    report.same_first += a.front() == b.front() ? 1 : 0;
    for (const std::size_t i : a) report.top5_overlap += std::count(b.begin(), b.end(), i) > 0 ? 1 : 0;
    if (t + 1 == tokens.size()) continue;
    const double lost = p[tokens[t + 1]], got = q[tokens[t + 1]];
    report.loss_reference -= lost;
    report.loss_test -= got;
    report.loss_difference += lost - got;
    difference_squares += (lost - got) * (lost - got);
  }
  const auto n = static_cast<double>(report.positions);
  report.kl_mean /= n;
  report.same_first /= n;
  report.top5_overlap /= n * static_cast<double>(std::min(kTop, vocabulary));
  if (report.positions < 2) return report;
  const double m = n - 1;  // tokens foretold
  report.loss_reference /= m;
  report.loss_test /= m;
  report.loss_difference /= m;
  const double variance = difference_squares / m - report.loss_difference * report.loss_difference;
  if (m > 1) report.standard_error = std::sqrt(std::max(0.0, variance) / (m - 1));
  return report;
}

}  // namespace assay
