#include "refimpl/fingerprint/soft_cap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/system/threads.h"
#include "refimpl/fingerprint/singular_values.h"

namespace assay {
namespace {

constexpr int kMostSteps = 40;
constexpr double kNearest = 0.99999;  // of (ln p + s) / c: at 1 it would be infinite
constexpr double kFirst = 0.3;        // … of the first guess
constexpr double kDamping = 1e-12;    // of the normal equations
constexpr double kSmallestStep = 1e-4, kDone = 1e-11;
constexpr std::size_t kDataForEach = 4;  // entries outside the rank, of each unknown: fewer prove nothing

// z and its derivatives, tokens × contexts.
struct State {
  std::vector<double> shift;  // of each context
  double k = 0;               // 1 / c
};
struct Opened {
  DenseMatrix z, by_shift, by_k;
};

bool possible(const DenseMatrix& told, const State& state) {
  if (!(state.k > 0)) return false;
  for (std::size_t t = 0; t < told.columns(); ++t)
    for (const double value : told.column(t))
      if (!(std::abs(state.k * (value + state.shift[t])) < kNearest)) return false;
  return true;
}

// With a = k (ln p + s):  z = atanh(a) / k,  ∂z/∂s = 1 / (1 − a²),  ∂z/∂k = (a / (1 − a²) − atanh(a)) / k²
Opened open(const DenseMatrix& told, const State& state) {
  Opened o{DenseMatrix(told.rows(), told.columns()), DenseMatrix(told.rows(), told.columns()),
           DenseMatrix(told.rows(), told.columns())};
  for (std::size_t t = 0; t < told.columns(); ++t)
    for (std::size_t v = 0; v < told.rows(); ++v) {
      const double a = state.k * (told.at(v, t) + state.shift[t]), wide = std::atanh(a);
      o.z.at(v, t) = wide / state.k;
      o.by_shift.at(v, t) = 1 / (1 - a * a);
      o.by_k.at(v, t) = (a / (1 - a * a) - wide) / (state.k * state.k);
    }
  return o;
}

double outside(const std::vector<double>& values, std::size_t rank) {
  double squares = 0;
  for (std::size_t i = rank; i < values.size(); ++i) squares += values[i] * values[i];
  return std::sqrt(squares);
}

// (I − B Bᵀ) M for orthonormal columns B.
DenseMatrix outside_of(const DenseMatrix& basis, DenseMatrix m, int jobs) {
  parallel_for(jobs, m.columns(), [&](std::size_t t) {
    const std::span<double> column = m.column(t);
    for (std::size_t r = 0; r < basis.columns(); ++r) {
      const double part = dot(basis.column(r), column);
      for (std::size_t i = 0; i < column.size(); ++i) column[i] -= part * basis.column(r)[i];
    }
  });
  return m;
}

// AᵀB
DenseMatrix product_of(const DenseMatrix& a, const DenseMatrix& b, int jobs) {
  DenseMatrix c(a.columns(), b.columns());
  parallel_for(jobs, b.columns(), [&](std::size_t j) {
    for (std::size_t i = 0; i < a.columns(); ++i) c.at(i, j) = dot(a.column(i), b.column(j));
  });
  return c;
}

// x of N x = b for symmetric positive N, by Cholesky's L Lᵀ; empty: it is not positive.
std::vector<double> solve(DenseMatrix n, std::vector<double> b) {
  const std::size_t size = b.size();
  for (std::size_t j = 0; j < size; ++j) {
    for (std::size_t k = 0; k < j; ++k) {
      const double f = n.at(j, k);
      for (std::size_t i = j; i < size; ++i) n.at(i, j) -= f * n.at(i, k);
    }
    if (!(n.at(j, j) > 0)) return {};
    const double root = std::sqrt(n.at(j, j));
    for (std::size_t i = j; i < size; ++i) n.at(i, j) /= root;
  }
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= n.at(i, k) * b[k];
    b[i] /= n.at(i, i);
  }
  for (std::size_t i = size; i-- > 0;) {
    for (std::size_t k = i + 1; k < size; ++k) b[i] -= n.at(k, i) * b[k];
    b[i] /= n.at(i, i);
  }
  return b;
}

// The step that, to first order, leaves least outside rank r on both sides; empty: there is none.
//   J: column t is (U₂ᵀ ∂z/∂s_t)(V₂ᵀ e_t)ᵀ, the last U₂ᵀ ∂z/∂k V₂;  JᵀJ of the first is (GᵀG) ∘ (V₂V₂ᵀ)
std::vector<double> newton_step(const Opened& o, std::size_t rank, int jobs) {
  const LeadingVectors lead = leading_vectors(o.z, rank, jobs);
  const DenseMatrix by_shift = outside_of(lead.left, o.by_shift, jobs);
  const auto both = [&](const DenseMatrix& m) {  // outside on both sides
    DenseMatrix left = outside_of(lead.left, m, jobs);
    DenseMatrix t(left.columns(), left.rows());
    for (std::size_t j = 0; j < left.columns(); ++j)
      for (std::size_t i = 0; i < left.rows(); ++i) t.at(j, i) = left.at(i, j);
    t = outside_of(lead.right, std::move(t), jobs);
    for (std::size_t j = 0; j < left.columns(); ++j)
      for (std::size_t i = 0; i < left.rows(); ++i) left.at(i, j) = t.at(j, i);
    return left;
  };
  const DenseMatrix by_k = both(o.by_k), rest = both(o.z);
  const std::size_t n = o.z.columns();
  const DenseMatrix g = product_of(by_shift, by_shift, jobs);
  DenseMatrix normal(n + 1, n + 1);
  std::vector<double> b(n + 1);
  for (std::size_t t = 0; t < n; ++t) {
    for (std::size_t u = 0; u < n; ++u) {
      double q = t == u ? 1 : 0;
      for (std::size_t r = 0; r < rank; ++r) q -= lead.right.at(t, r) * lead.right.at(u, r);
      normal.at(t, u) = g.at(t, u) * q;
    }
    normal.at(n, t) = normal.at(t, n) = dot(by_shift.column(t), by_k.column(t));
    normal.at(n, n) += dot(by_k.column(t), by_k.column(t));
    b[t] = -dot(by_shift.column(t), rest.column(t));
    b[n] -= dot(by_k.column(t), rest.column(t));
  }
  for (std::size_t t = 0; t <= n; ++t) normal.at(t, t) *= 1 + kDamping;
  return solve(std::move(normal), std::move(b));
}

State first_guess(const DenseMatrix& told) {
  State state{std::vector<double>(told.columns()), 0};
  double largest = 0;
  for (std::size_t t = 0; t < told.columns(); ++t) {
    double sum = 0;
    for (const double value : told.column(t)) sum += value;
    state.shift[t] = -sum / static_cast<double>(told.rows());
    for (const double value : told.column(t)) largest = std::max(largest, std::abs(value + state.shift[t]));
  }
  state.k = kFirst / largest;
  return state;
}

// So much of the step as is possible and helps; false: none of it.
bool go(const DenseMatrix& told, std::size_t rank, int jobs, const std::vector<double>& step, State& state,
        double& left) {
  for (double part = 1; part > kSmallestStep; part /= 2) {
    State next = state;
    for (std::size_t t = 0; t < next.shift.size(); ++t) next.shift[t] += part * step[t];
    next.k += part * step.back();
    if (!possible(told, next)) continue;
    const double now = outside(singular_values(open(told, next).z, jobs), rank);
    if (!(now < left)) continue;
    state = std::move(next);
    left = now;
    return true;
  }
  return false;
}

}  // namespace

std::optional<Uncapped> remove_soft_cap(const DenseMatrix& table, std::size_t rank, int jobs) {
  const std::size_t n = table.rows(), m = table.columns();
  if (rank >= std::min(n, m) || (n - rank) * (m - rank) < kDataForEach * (n + 1)) return std::nullopt;
  DenseMatrix told(m, n);
  for (std::size_t t = 0; t < n; ++t)
    for (std::size_t v = 0; v < m; ++v) told.at(v, t) = table.at(t, v);
  State state = first_guess(told);
  double left = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kMostSteps && !interrupted(); ++i) {
    const std::vector<double> step = newton_step(open(told, state), rank, jobs);
    if (step.empty() || !go(told, rank, jobs, step, state, left)) break;
    double largest = 0;
    for (std::size_t t = 0; t < n; ++t) largest = std::max(largest, std::abs(step[t]));
    if (largest < kDone) break;
  }
  if (!std::isfinite(left)) return std::nullopt;
  const DenseMatrix z = open(told, state).z;
  Uncapped found{1 / state.k, DenseMatrix(n, m)};
  for (std::size_t t = 0; t < n; ++t)
    for (std::size_t v = 0; v < m; ++v) found.logits.at(t, v) = z.at(v, t);
  return found;
}

}  // namespace assay
