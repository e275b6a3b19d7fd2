#include "refimpl/sampling/law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/system/error.h"
#include "refimpl/ops/sample.h"
#include "refimpl/ops/softmax.h"

namespace assay {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

void refuse_unusable(std::span<const double> logits) {
  // -inf + finite numbers is -inf or finite; NaN and +inf leave their mark on a sum that is 0 of finite ones.
  double mark = 0, most = kNever;
  for (const double x : logits) {
    most = std::max(most, x);
    mark += x == kNever ? 0 : 0 * x;
  }
  if (mark == 0 && most != kNever) return;
  bool any = false;
  for (const double x : logits) {
    if (std::isnan(x)) throw Error::input("the logits hold NaN").remedy("look where it begins with --dump");
    if (x == -kNever)
      throw Error::input("the logits hold infinity").remedy("look where it begins with --dump");
    any |= x != kNever;
  }
  if (!any) throw Error::input("no token is possible: every logit is -infinity");
}

// Places that are still possible, likeliest first, the earlier one of equals. Only as many as are looked at are put in
// order: a vocabulary has 10⁵ and more.
class ByLikelihood {
 public:
  explicit ByLikelihood(const std::vector<double>& logits) : logits_(logits) {
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (logits[i] != kNever) order_.push_back(i);
  }
  std::size_t size() const { return order_.size(); }
  std::size_t at(std::size_t rank) {
    while (rank >= sorted_) sort_more();
    return order_[rank];
  }

 private:
  void sort_more() {
    const std::size_t end = std::min(order_.size(), std::max<std::size_t>(64, 4 * sorted_));
    const auto begin = order_.begin();
    std::partial_sort(begin + offset(sorted_), begin + offset(end), order_.end(),
                      [&](std::size_t a, std::size_t b) {
                        return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
                      });
    sorted_ = end;
  }
  static std::ptrdiff_t offset(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

  const std::vector<double>& logits_;
  std::vector<std::size_t> order_;
  std::size_t sorted_ = 0;
};

// All but the likeliest `count`.
void keep_first(std::vector<double>& logits, ByLikelihood& order, std::size_t count) {
  std::vector<double> kept(logits.size(), kNever);
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) kept[order.at(i)] = logits[order.at(i)];
  logits = std::move(kept);
}

void keep_top_p(std::vector<double>& logits, double top_p) {
  std::vector<double> p = logits;
  softmax_three_pass(p);
  ByLikelihood order(logits);
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sum += p[order.at(i)];
    if (sum >= top_p) return keep_first(logits, order, i + 1);
  }
}

void keep_min_p(std::vector<double>& logits, double min_p) {
  const double least = *std::max_element(logits.begin(), logits.end()) + std::log(min_p);
  for (double& logit : logits) logit = logit < least ? kNever : logit;
}

// Locally typical sampling (Meister et al. 2022): those whose surprise -ln p is nearest to the expected surprise.
void keep_typical(std::vector<double>& logits, double mass) {
  const std::vector<double> ln_p = log_probabilities(logits);
  double entropy = 0;
  for (const double x : ln_p)
    if (x != kNever) entropy -= std::exp(x) * x;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] != kNever) order.push_back(i);
  const auto shift = [&](std::size_t i) { return std::abs(-ln_p[i] - entropy); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shift(a) < shift(b); });
  double sum = 0;
  std::size_t last = 0;  // the first at which the sum is no longer below the mass
  while (last + 1 < order.size() && (sum += std::exp(ln_p[order[last]])) < mass) ++last;
  const double farthest = shift(order[last]);
  for (const std::size_t i : order)
    if (shift(i) > farthest) logits[i] = kNever;
}

// The places of the `count` largest logits, the earlier of equals, in their own order.
std::vector<std::size_t> likeliest_places(std::span<const double> logits, std::size_t count) {
  const auto likelier = [&](std::size_t a, std::size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  std::vector<std::size_t> heap;  // its top is the least likely of those kept
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == kNever || (heap.size() == count && logits[i] <= logits[heap.front()])) continue;
    if (heap.size() == count) {
      std::pop_heap(heap.begin(), heap.end(), likelier);
      heap.pop_back();
    }
    heap.push_back(i);
    std::push_heap(heap.begin(), heap.end(), likelier);
  }
  std::sort(heap.begin(), heap.end());
  return heap;
}

// Temperature, and all rules but top-k.
std::vector<double> law_of_all(std::vector<double> logits, const SamplingParams& params) {
  // Differences first: a tiny temperature makes -inf of what is less likely, never a NaN.
  const double most = *std::max_element(logits.begin(), logits.end());
  for (double& logit : logits) logit = (logit - most) / params.temperature;
  if (params.top_p < 1) keep_top_p(logits, params.top_p);
  if (params.min_p > 0) keep_min_p(logits, params.min_p);
  if (params.typical_p < 1) keep_typical(logits, params.typical_p);
  softmax_three_pass(logits);
  return logits;
}

}  // namespace

TokenId likeliest(std::span<const double> logits) {
  refuse_unusable(logits);
  return static_cast<TokenId>(argmax(logits));
}

std::vector<double> log_probabilities(std::span<const double> logits) {
  OnlineSoftmax sum;
  double weight = 0;
  for (const double x : logits)
    if (x != kNever) sum.take(x, weight);
  const double total = sum.log_sum_exp();
  std::vector<double> out(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) out[i] = logits[i] - total;
  return out;
}

std::vector<double> sampling_law(std::span<const double> given, const SamplingParams& params) {
  refuse_unusable(given);
  if (params.temperature == 0) {
    std::vector<double> certain(given.size());
    certain[argmax(given)] = 1;
    return certain;
  }
  if (params.top_k == 0 || params.top_k >= given.size())
    return law_of_all({given.begin(), given.end()}, params);
  // What comes after top-k is computed of those alone.
  const std::vector<std::size_t> kept = likeliest_places(given, params.top_k);
  std::vector<double> logits;
  for (const std::size_t i : kept) logits.push_back(given[i]);
  const std::vector<double> among = law_of_all(std::move(logits), params);
  std::vector<double> law(given.size());
  for (std::size_t i = 0; i < kept.size(); ++i) law[kept[i]] = among[i];
  return law;
}

TokenId token_at(std::span<const double> law, double u) {
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < law.size(); ++i) {
    if (law[i] == 0) continue;
    sum += law[i];
    last = i;
    if (u < sum) break;
  }
  return static_cast<TokenId>(last);
}

}  // namespace assay
