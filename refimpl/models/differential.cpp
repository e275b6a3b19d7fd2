#include "refimpl/models/differential.h"

#include <cmath>
#include <numeric>

namespace assay {
namespace {

// Each head's vector of `a`, then its vector of `b`.
Matrix head_by_head(const Matrix& a, const Matrix& b, std::size_t width, Ops& ops) {
  const std::vector<double> first = ops.download(a), second = ops.download(b);
  std::vector<double> both;
  both.reserve(2 * first.size());
  const auto width_of = static_cast<std::ptrdiff_t>(width);
  for (std::ptrdiff_t i = 0; i < std::ssize(first); i += width_of) {
    both.insert(both.end(), first.begin() + i, first.begin() + i + width_of);
    both.insert(both.end(), second.begin() + i, second.begin() + i + width_of);
  }
  return ops.upload(both, a.rows(), 2 * a.columns());
}

}  // namespace

Differential::Differential(const Weights& weights, std::size_t layer, std::size_t v_head_dim, double epsilon,
                           const DifferentialForm& form)
    : pairs_(form.pairs),
      start_(0.8 - 0.6 * std::exp(-0.3 * (static_cast<double>(layer) - (form.pairs ? 1 : 0)))),
      norm_(form.pairs ? Norm(weights.get({.role = Role::attention_gate, .layer = layer, .half = 4}), {},
                              NormRule{.epsilon = form.epsilon})
                       : Norm::unweighted(2 * v_head_dim, {.epsilon = epsilon})) {
  const auto vector = [&](int number) {
    return decode_vector(weights.get({.role = Role::attention_gate, .layer = layer, .half = number}));
  };
  const auto product = [&](int number) {
    const std::vector<double> q = vector(number), k = vector(number + 1);
    return std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
  };
  q1k1_ = product(0);
  q2k2_ = product(2);
}

Matrix Differential::of_halves(const AttentionCall& call, std::size_t keys, std::size_t values,
                               Ops& ops) const {
  AttentionCall part = call;
  part.heads = call.heads / 2;
  part.kv_heads = call.kv_heads / 2;
  part.q = half_of(call.q, keys, call.heads, call.qk_dim, ops);
  for (SequenceMetadata& s : part.sequences) {
    s.key_rows.base = half_of(s.key_rows.base, keys, call.kv_heads, call.qk_dim, ops);
    s.value_rows.base = half_of(s.value_rows.base, values, call.kv_heads, call.v_dim, ops);
  }
  return ops.attention(part);
}

Matrix Differential::half_of(const Matrix& rows, std::size_t half, std::size_t vectors, std::size_t width,
                             Ops& ops) const {
  if (pairs_) return ops.of_each(rows, 2 * width, half * width, width);
  return rows.part(half * (vectors / 2) * width, vectors / 2 * width);
}

Matrix Differential::operator()(const AttentionCall& call, Ops& ops) const {
  const auto half = [&](std::size_t keys) {
    return head_by_head(of_halves(call, keys, 0, ops), of_halves(call, keys, 1, ops), call.v_dim, ops);
  };
  const auto rounded = [&](double x) { return ops.arithmetic().round(x); };
  const double lambda = rounded(rounded(rounded(std::exp(q1k1_)) - rounded(std::exp(q2k2_))) + start_);
  const Matrix difference = ops.add(half(0), ops.multiply(half(1), -lambda));
  return ops.multiply(norm_(difference, ops), 1 - start_);
}

}  // namespace assay
