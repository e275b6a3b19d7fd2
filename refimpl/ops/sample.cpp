#include "refimpl/ops/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "refimpl/ops/softmax.h"

namespace assay {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

void penalize(std::vector<double>& logits, double penalty, std::span<const TokenId> seen) {
  if (penalty == 1) return;
  std::vector<bool> done(logits.size());
  for (const TokenId id : seen) {
    if (id >= logits.size() || done[id]) continue;
    logits[id] = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
    done[id] = true;
  }
}

// Places of the logits, largest first, the earlier one of equals.
std::vector<std::size_t> by_likelihood(const std::vector<double>& logits) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  return order;
}

void keep_only(std::vector<double>& logits, const std::vector<std::size_t>& order, std::size_t count) {
  for (std::size_t i = count; i < order.size(); ++i) logits[order[i]] = kNever;
}

std::size_t nucleus(const std::vector<double>& logits, const std::vector<std::size_t>& order, double top_p) {
  std::vector<double> p = logits;
  softmax_three_pass(p);
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sum += p[order[i]];
    if (sum >= top_p) return i + 1;
  }
  return order.size();
}

}  // namespace

double SampleStream::uniform() {
  state_ += 0x9E3779B97F4A7C15;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

std::size_t argmax(std::span<const double> logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<double> sample_distribution(std::span<const double> given, const SampleRule& rule,
                                        std::span<const TokenId> seen) {
  std::vector<double> logits(given.begin(), given.end());
  penalize(logits, rule.repetition_penalty, seen);
  if (rule.temperature == 0) {
    std::vector<double> certain(logits.size());
    certain[argmax(logits)] = 1;
    return certain;
  }
  for (double& logit : logits) logit /= rule.temperature;
  if (rule.top_k != 0 || rule.top_p < 1) {
    const std::vector<std::size_t> order = by_likelihood(logits);
    if (rule.top_k != 0) keep_only(logits, order, rule.top_k);
    if (rule.top_p < 1) keep_only(logits, order, nucleus(logits, order, rule.top_p));
  }
  if (rule.min_p > 0) {
    const double least = *std::max_element(logits.begin(), logits.end()) + std::log(rule.min_p);
    for (double& logit : logits) logit = logit < least ? kNever : logit;
  }
  softmax_three_pass(logits);
  return logits;
}

TokenId sample(std::span<const double> logits, const SampleRule& rule, std::span<const TokenId> seen,
               SampleStream& stream) {
  if (std::any_of(logits.begin(), logits.end(), [](double x) { return std::isnan(x); }))
    throw Error::input("the logits hold NaN").remedy("look where it begins with --dump");
  const std::vector<double> p = sample_distribution(logits, rule, seen);
  const double u = rule.temperature == 0 ? 0 : stream.uniform();
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    sum += p[i];
    last = i;
    if (u < sum) break;
  }
  return static_cast<TokenId>(last);
}

}  // namespace assay
