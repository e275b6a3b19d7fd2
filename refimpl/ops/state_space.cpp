// A selective state space (Gu & Dao 2023, arXiv 2312.00752; Dao & Gu 2024, 2405.21060). Of each channel p of a head,
//
//   recurrent   hₙ ← exp(aₙ Δ) hₙ + Δ x Bₙ;  y = Σₙ Cₙ hₙ + D x      aₙ = -exp(A_log), one a head or one an n
//   chunked     with Gᵢ = Δ₁ + … + Δᵢ within a chunk that begins at h⁰:
//               yᵢ = Σₙ Cᵢₙ exp(aₙ Gᵢ) h⁰ₙ + Σ_{j≤i} (Σₙ Cᵢₙ B_jₙ exp(aₙ (Gᵢ - G_j))) Δ_j x_j + D xᵢ
//               hₙ = exp(aₙ G) h⁰ₙ + Σ_j exp(aₙ (G - G_j)) Δ_j x_j B_jₙ
//
// with Δ = clamp(softplus(step + step_bias)), which bf16 rounds twice. Sums are in double, states rounded as the delta
// rule's are (delta_rule.cpp).
#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/ops/recurrence.h"
#include "refimpl/ops/reference.h"

namespace assay {
namespace {

// One head of one sequence.
template <class T>
class SpaceHead {
 public:
  // `rates`: exp(A_log), one or one a column of the state.
  SpaceHead(const StateSpaceCall& call, const SequenceState& sequence, const Arithmetic& arithmetic,
            std::size_t head, std::span<const double> rates, double skip, double bias)
      : call_(call),
        sequence_(sequence),
        arithmetic_(arithmetic),
        head_(head),
        rates_(rates),
        skip_(skip),
        bias_(bias),
        state_(sequence, head * call.head_dim, call.head_dim, call.state) {}

  void run(const Matrix& out) {
    for (std::size_t t = 0; t < sequence_.tokens;) {
      const std::size_t count = call_.form == ScanForm::recurrent ? 1 : state_.chunk(t);
      count == 1 ? step(t, out) : chunk(t, count, out);
      t += count;
      state_.keep(t - 1);
    }
  }

 private:
  const T* x(std::size_t t) const { return call_.x.row<T>(sequence_.first + t) + head_ * call_.head_dim; }
  const T* shared(const Matrix& m, std::size_t t) const {
    return m.row<T>(sequence_.first + t) + head_ / (call_.heads / call_.groups) * call_.state;
  }
  double step_size(std::size_t t) const {
    const double raw = static_cast<double>(*(call_.step.row<T>(sequence_.first + t) + head_));
    const double size = arithmetic_.stage(softplus(arithmetic_.stage(raw + bias_)));
    return std::clamp(size, call_.least_step, call_.most_step);
  }
  double kept(std::size_t n, double time) const {
    return std::exp(-rates_[rates_.size() == 1 ? 0 : n] * time);
  }
  void put(const Matrix& out, std::size_t t, std::size_t p, double y) const {
    y += skip_ * static_cast<double>(x(t)[p]);
    const bool wide = call_.rounding == ResultRounding::float32;
    out.row<T>(sequence_.first + t)[head_ * call_.head_dim + p] =
        static_cast<T>(wide ? y : arithmetic_.round(y));
  }

  void step(std::size_t t, const Matrix& out) {
    const double size = step_size(t);
    const T *b = shared(call_.b, t), *c = shared(call_.c, t);
    std::vector<double> kept_of(call_.state);
    for (std::size_t n = 0; n < call_.state; ++n) kept_of[n] = kept(n, size);
    for (std::size_t p = 0; p < call_.head_dim; ++p) {
      const double in = size * static_cast<double>(x(t)[p]);
      T* h = state_.row(p);
      for (std::size_t n = 0; n < call_.state; ++n)
        h[n] = static_cast<T>(kept_of[n] * static_cast<double>(h[n]) + in * static_cast<double>(b[n]));
      put(out, t, p, dot(c, h, call_.state));
    }
  }

  void chunk(std::size_t first, std::size_t count, const Matrix& out) {
    std::vector<double> sizes(count), times(count);  // Δ and G
    for (std::size_t i = 0; i < count; ++i) {
      sizes[i] = step_size(first + i);
      times[i] = sizes[i] + (i == 0 ? 0 : times[i - 1]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const T* c = shared(call_.c, first + i);
      std::vector<double> y(call_.head_dim), seen(call_.state);
      for (std::size_t n = 0; n < call_.state; ++n) seen[n] = static_cast<double>(c[n]) * kept(n, times[i]);
      for (std::size_t p = 0; p < call_.head_dim; ++p) y[p] = dot(seen.data(), state_.row(p), call_.state);
      for (std::size_t j = 0; j <= i; ++j) {
        const T* b = shared(call_.b, first + j);
        double weight = 0;
        for (std::size_t n = 0; n < call_.state; ++n)
          weight += static_cast<double>(c[n]) * static_cast<double>(b[n]) * kept(n, times[i] - times[j]);
        for (std::size_t p = 0; p < call_.head_dim; ++p)
          y[p] += weight * sizes[j] * static_cast<double>(x(first + j)[p]);
      }
      for (std::size_t p = 0; p < call_.head_dim; ++p) put(out, first + i, p, y[p]);
    }
    for (std::size_t n = 0; n < call_.state; ++n) {
      std::vector<double> factors(count);
      for (std::size_t j = 0; j < count; ++j)
        factors[j] =
            kept(n, times.back() - times[j]) * sizes[j] * static_cast<double>(shared(call_.b, first + j)[n]);
      for (std::size_t p = 0; p < call_.head_dim; ++p) {
        double sum = kept(n, times.back()) * static_cast<double>(state_.row(p)[n]);
        for (std::size_t j = 0; j < count; ++j) sum += factors[j] * static_cast<double>(x(first + j)[p]);
        state_.row(p)[n] = static_cast<T>(sum);
      }
    }
  }

  const StateSpaceCall& call_;
  const SequenceState& sequence_;
  const Arithmetic& arithmetic_;
  std::size_t head_;
  std::span<const double> rates_;
  double skip_, bias_;
  StateRows<T> state_;
};

}  // namespace

void check_shapes(const StateSpaceCall& call, const std::vector<double>& decay_log,
                  const std::vector<double>& skip, const std::vector<double>& step_bias) {
  const std::size_t tokens = call.x.rows(), shared = call.groups * call.state;
  const auto is = [&](const Matrix& x, std::size_t columns) {
    return x.rows() == tokens && x.columns() == columns;
  };
  if (call.groups == 0 || call.heads % call.groups != 0 || !is(call.x, call.heads * call.head_dim) ||
      !is(call.b, shared) || !is(call.c, shared) || !is(call.step, call.heads))
    throw Error::internal(
        fmt::format("state space: x [{}, {}], b [{}, {}], step [{}, {}] of {} heads in {} groups", tokens,
                    call.x.columns(), call.b.rows(), call.b.columns(), call.step.rows(), call.step.columns(),
                    call.heads, call.groups));
  check_states("state space", call.sequences, tokens, call.heads * call.head_dim, call.state);
  if ((decay_log.size() != call.heads && decay_log.size() != call.heads * call.state) ||
      skip.size() != call.heads || step_bias.size() != call.heads)
    throw Error::input(fmt::format("a state space of {} heads has {} decays, {} skips and {} biases",
                                   call.heads, decay_log.size(), skip.size(), step_bias.size()))
        .tensor(*call.decay_log.name);
}

Matrix ReferenceOps::run(const StateSpaceCall& call) {
  std::vector<double> rates = vector_of(call.decay_log, arithmetic());
  const std::vector<double> skip = vector_of(call.skip, arithmetic());
  const std::vector<double> bias = vector_of(call.step_bias, arithmetic());
  check_shapes(call, rates, skip, bias);
  for (double& rate : rates) rate = std::exp(rate);
  const std::size_t each = rates.size() / call.heads;
  Matrix out = allocate(call.x.rows(), call.x.columns());
  with_elements(out.real(), [&](auto element) {
    for (const SequenceState& sequence : call.sequences) {
      parallel_for(jobs(), call.heads, [&](std::size_t head) {
        SpaceHead<decltype(element)>(call, sequence, arithmetic(), head,
                                     std::span(rates).subspan(head * each, each), skip[head], bias[head])
            .run(out);
      });
    }
  });
  return out;
}

}  // namespace assay
