#include "kernels/logprobs/routed_ops.h"

#include <algorithm>
#include <cmath>

namespace assay::logprobs {
namespace {

constexpr double kOfLargest = 2, kOfSpread = 6;
constexpr std::string_view kRouterTap = ".router_logits";

bool same_experts(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

// The move is that of other logits, where routers before were turned since.
void move_logits(const WatchedRouter& router, const TurnedRouter& turned, std::span<double> logits) {
  constexpr int kDoublings = 12;
  const std::vector<double> own(logits.begin(), logits.end());
  for (double times = 1; times <= std::exp2(kDoublings); times *= 2) {
    for (std::size_t e = 0; e < own.size(); ++e) logits[e] = own[e] + times * turned.move[e];
    if (same_experts(choose_experts(router, logits).experts, turned.experts)) return;
  }
  std::copy(own.begin(), own.end(), logits.begin());
}

}  // namespace

double RouterErrors::at(std::size_t token) const {
  const OfToken of = token < tokens.size() ? tokens[token] : OfToken();
  const double spread = of.count == 0 ? 0 : std::sqrt(of.squares / static_cast<double>(of.count));
  return std::max(kOfLargest * largest, kOfSpread * spread);
}

Routing choose_experts(const WatchedRouter& router, std::span<const double> logits) {
  ReferenceOps exact(Arithmetic{Precision::f64}, 1);
  return exact.moe_gate(exact.upload(logits, logits.size() / router.experts, router.experts),
                        router.correction, router.rule);
}

void RoutedOps::see(const std::string& tap, const Matrix&) {
  if (tap.ends_with(kRouterTap)) name_ = tap.substr(0, tap.size() - kRouterTap.size());
}

// A text whose rotary frequencies follow its length may begin anew, whole (Sequence::next).
void RoutedOps::step(std::span<const std::uint32_t> tokens) {
  first_ = tokens.size() == tokens_ ? 0 : next_;
  next_ = first_ + tokens.size();
  router_ = 0;
}

Routing RoutedOps::run(const MoeGateCall& given) {
  MoeGateCall call = given;
  if (!turned_.empty()) call.logits = turned_logits(given);
  Routing routing = PassingOps::run(call);
  if (record_ != nullptr) keep(call, routing);
  if (truth_ != nullptr) compare(call, routing);
  ++router_;
  return routing;
}

Matrix RoutedOps::turned_logits(const MoeGateCall& call) {
  const std::size_t rows = call.logits.rows(), experts = call.logits.columns();
  const WatchedRouter router = {name_, call.correction, call.rule, experts, {}, {}};
  std::vector<double> logits;
  for (const TurnedRouter& turned : turned_) {
    if (turned.router != router_ || turned.token < first_ || turned.token >= first_ + rows) continue;
    if (logits.empty()) logits = download(call.logits);
    move_logits(router, turned, std::span(logits).subspan((turned.token - first_) * experts, experts));
  }
  return logits.empty() ? call.logits : upload(logits, rows, experts);
}

void RoutedOps::keep(const MoeGateCall& call, const Routing& routing) {
  if (router_ >= record_->size()) record_->resize(router_ + 1);
  WatchedRouter& router = (*record_)[router_];
  router.name = name_;
  router.correction = call.correction;
  router.rule = call.rule;
  router.experts = call.logits.columns();
  router.logits.resize(first_ * router.experts);
  router.chosen.resize(first_ * routing.top_k);
  const std::vector<double> logits = download(call.logits);
  router.logits.insert(router.logits.end(), logits.begin(), logits.end());
  router.chosen.insert(router.chosen.end(), routing.experts.begin(), routing.experts.end());
}

void RoutedOps::compare(const MoeGateCall& call, const Routing& routing) {
  const WatchedRouter& truth = truth_->at(router_);
  if (router_ >= errors_->size()) errors_->resize(router_ + 1);
  RouterErrors& errors = (*errors_)[router_];
  const std::size_t end = first_ + call.logits.rows();
  errors.tokens.resize(std::max(errors.tokens.size(), end));
  turned_tokens_.resize(std::max(turned_tokens_.size(), end));
  const std::vector<double> logits = download(call.logits);
  for (std::size_t t = first_; t < end; ++t) {
    if (turned_tokens_[t]) continue;
    const std::span<const double> right = truth.row(t);
    RouterErrors::OfToken& of = errors.tokens[t];
    of.count += right.size();
    for (std::size_t e = 0; e < right.size(); ++e) {
      const double error = std::abs(logits[(t - first_) * right.size() + e] - right[e]);
      of.squares += error * error;
      errors.largest = std::max(errors.largest, error);
    }
    turned_tokens_[t] = !same_experts(
        std::span(routing.experts).subspan((t - first_) * routing.top_k, routing.top_k), truth.choice(t));
  }
}

}  // namespace assay::logprobs
