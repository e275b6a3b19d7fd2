#include "kernels/harness/mla_budget.h"

#include <algorithm>
#include <cmath>

#include "kernels/harness/measure.h"
#include "kernels/harness/softmax_error.h"

namespace assay {
namespace {

// Σ a b, Σ |a b| and Σ (a b)².
struct DotSums {
  double value = 0, size = 0, squares = 0;
  void add(double product) {
    value += product;
    size += std::fabs(product);
    squares += product * product;
  }
};

template <class A, class B>
DotSums dot_sums(const A* a, const B* b, std::size_t count) {
  DotSums sums;
  for (std::size_t i = 0; i < count; ++i) sums.add(static_cast<double>(a[i]) * static_cast<double>(b[i]));
  return sums;
}

constexpr double kUniform = 4;  // of the root of squares of errors that are anything up to their size

}  // namespace

MlaBudget::MlaBudget(const MlaHeadShape& shape, std::span<const float> w, std::size_t keys,
                     const std::function<const double*(std::size_t)>& row)
    : shape_(shape),
      w_k_(w.first(shape.nope * shape.rank)),
      w_v_(w.subspan(shape.nope * shape.rank, shape.v * shape.rank)) {
  for (std::size_t k = 0; k < keys; ++k) {
    const double* c = rows_.emplace_back(row(k));
    for (std::size_t n = 0; n < shape.nope; ++n) {
      const DotSums s = dot_sums(&w_k_[n * shape.rank], c, shape.rank);
      keys_.push_back(s.value);
      key_sizes_.push_back(s.size);
    }
    for (std::size_t i = 0; i < shape.v; ++i) {
      const DotSums s = dot_sums(&w_v_[i * shape.rank], c, shape.rank);
      values_.push_back(s.value);
      value_sizes_.push_back(s.size);
    }
  }
}

MlaBudget::Scores MlaBudget::scores(const double* q, std::size_t count) const {
  const auto& [rank, nope, rope, v, scale] = shape_;
  std::vector<double> taken(rank), taken_size(rank);  // t, |W_k|ᵀ|q|
  for (std::size_t n = 0; n < nope; ++n) {
    for (std::size_t r = 0; r < rank; ++r) {
      const double product = q[n] * static_cast<double>(w_k_[n * rank + r]);
      taken[r] += product;
      taken_size[r] += std::fabs(product);
    }
  }
  Scores s;
  const double u = unit_roundoff(ElementType::BF16);
  for (std::size_t k = 0; k < count; ++k) {
    const DotSums latent = dot_sums(taken.data(), rows_[k], rank),
                  of_sizes = dot_sums(taken_size.data(), rows_[k], rank),
                  rotated = dot_sums(q + nope, rows_[k] + rank, rope),
                  expanded = dot_sums(q, &keys_[k * nope], nope),
                  of_key_sizes = dot_sums(q, &key_sizes_[k * nope], nope);
    const double score = (latent.value + rotated.value) * scale;
    const double absorbed = accumulation_factor(nope) * std::sqrt(of_sizes.squares) +
                            accumulation_factor(rank + rope) * (latent.size + rotated.size);
    const double naive = accumulation_factor(rank) * std::sqrt(of_key_sizes.squares) +
                         accumulation_factor(nope + rope) * (expanded.size + rotated.size);
    s.values.push_back(score);
    s.errors.push_back(scale * std::max(absorbed, naive) + 4 * std::fabs(score));
    s.roundings.push_back(u * (kUniform * scale * std::sqrt(std::max(latent.squares, expanded.squares)) +
                               2 * std::fabs(score)));
  }
  return s;
}

MlaBudget::Mixed MlaBudget::mixed(std::span<const double> p) const {
  Mixed m = {std::vector<double>(shape_.rank), std::vector<double>(shape_.rank)};
  for (std::size_t k = 0; k < p.size(); ++k) {
    for (std::size_t r = 0; r < shape_.rank; ++r) {
      m.latent[r] += p[k] * rows_[k][r];
      m.size[r] += p[k] * std::fabs(rows_[k][r]);
    }
  }
  return m;
}

std::vector<double> MlaBudget::result(std::span<const double> p) const {
  std::vector<double> out(shape_.v);
  for (std::size_t k = 0; k < p.size(); ++k) {
    for (std::size_t i = 0; i < shape_.v; ++i) out[i] += p[k] * values_[k * shape_.v + i];
  }
  return out;
}

// `moved`: by how much each weight may be, relatively.
void MlaBudget::add_result(std::span<const double> p, std::span<const double> moved, double* error) const {
  const std::vector<double> out = result(p);
  const Mixed m = mixed(p);
  const double over_keys = accumulation_factor(p.size()), over_rank = accumulation_factor(shape_.rank);
  for (std::size_t i = 0; i < shape_.v; ++i) {
    double by_weights = 0, expansions = 0, size = 0;
    for (std::size_t k = 0; k < p.size(); ++k) {
      const std::size_t at = k * shape_.v + i;
      by_weights += p[k] * moved[k] * std::fabs(values_[at] - out[i]);
      expansions += p[k] * value_sizes_[at] * p[k] * value_sizes_[at];
      size += p[k] * std::fabs(values_[at]);
    }
    const float* w = &w_v_[i * shape_.rank];
    const double absorbed = over_keys * std::sqrt(dot_sums(w, m.size.data(), shape_.rank).squares) +
                            over_rank * dot_sums(w, m.latent.data(), shape_.rank).size;
    const double naive = over_rank * std::sqrt(expansions) + over_keys * size;
    error[i] += by_weights + over_keys * std::fabs(out[i]) + std::max(absorbed, naive);
  }
}

void MlaBudget::add_staged(std::span<const double> p, std::span<const double> roundings,
                           double* error) const {
  const double u = unit_roundoff(ElementType::BF16);
  const std::vector<double> out = result(p), moved = moved_weights(p, roundings);
  const Mixed m = mixed(p);
  for (std::size_t i = 0; i < shape_.v; ++i) {
    double by_weights = 0, of_values = 0;
    for (std::size_t k = 0; k < p.size(); ++k) {
      const double v = values_[k * shape_.v + i];
      by_weights += p[k] * (moved[k] * std::fabs(v - out[i]) + u * (1 + moved[k]) * std::fabs(v));
      of_values += p[k] * v * p[k] * v;
    }
    const double of_mixed = dot_sums(&w_v_[i * shape_.rank], m.latent.data(), shape_.rank).squares;
    error[i] += by_weights + kUniform * u * std::sqrt(std::max(of_values, of_mixed));
  }
}

void MlaBudget::add(const double* q, std::size_t count, double* per_roundoff, double* staged) const {
  const Scores s = scores(q, count);
  const std::vector<double> none(count);
  const std::vector<double> p = softmax_weights(s.values, none).p;
  const double largest = *std::max_element(s.values.begin(), s.values.end());
  std::vector<double> moved(count);
  for (std::size_t k = 0; k < count; ++k) moved[k] = s.errors[k] + (largest - s.values[k]) + 8;
  add_result(p, moved, per_roundoff);
  if (staged != nullptr) add_staged(p, s.roundings, staged);
}

}  // namespace assay
