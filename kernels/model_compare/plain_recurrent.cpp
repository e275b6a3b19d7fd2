// The yardstick of recurrent layers: token by token, in the type that activations are stored in.
#include <algorithm>
#include <cmath>

#include "core/system/threads.h"
#include "kernels/model_compare/plain_dot.h"
#include "kernels/model_compare/plain_ops.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

template <class T>
T plain_sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}
template <class T>
T plain_softplus(T x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

// What all heads of a call share; vectors are its weights.
struct PlainDelta {
  const DeltaRuleCall& call;
  const std::vector<double>&log, &bias;
  const Arithmetic& arithmetic;
  int order;
};

template <class T>
std::vector<T> unit_vector(const Matrix& x, std::size_t t, std::size_t first, const PlainDelta& p,
                           double scale) {
  const T* row = x.row<T>(t) + first;
  std::vector<T> values(row, row + p.call.key_dim);
  const T epsilon = static_cast<T>(p.call.norm_epsilon);
  const T length = epsilon == 0 ? T(1) : std::sqrt(plain_dot(row, row, values.size(), p.order) + epsilon);
  for (T& value : values) value = value / length * static_cast<T>(scale);
  return values;
}

template <class T>
std::vector<T> decays(const PlainDelta& p, std::size_t t, std::size_t head) {
  const std::size_t channels = p.bias.size() / p.call.value_heads;
  const T rate = static_cast<T>(std::exp(p.log[head]));
  std::vector<T> kept(p.call.key_dim);
  for (std::size_t c = 0; c < kept.size(); ++c) {
    const std::size_t at = head * channels + (channels == 1 ? 0 : c);
    const T z = p.call.decay.row<T>(t)[at] + static_cast<T>(p.bias[at]);
    kept[c] = std::exp(p.call.decay_floor != 0 ? static_cast<T>(p.call.decay_floor) * plain_sigmoid(rate * z)
                                               : -rate * plain_softplus(z));
  }
  return kept;
}

template <class T>
void delta_head(const PlainDelta& p, const SequenceState& sequence, std::size_t head, const Matrix& out) {
  const std::size_t keys = p.call.key_dim, values = p.call.value_dim;
  const std::size_t key_at = head / (p.call.value_heads / p.call.key_heads) * keys;
  StateRows<T> state(sequence, head * keys, keys, values);
  std::vector<T> column(keys);
  for (std::size_t i = 0; i < sequence.tokens; ++i) {
    const std::size_t t = sequence.first + i;
    const std::vector<T> q = unit_vector<T>(p.call.q, t, key_at, p, p.call.scale),
                         k = unit_vector<T>(p.call.k, t, key_at, p, 1), kept = decays<T>(p, t, head);
    const T beta =
        static_cast<T>(p.call.beta_scale * p.arithmetic.stage(plain_sigmoid(p.call.beta.row<T>(t)[head])));
    for (std::size_t v = 0; v < values; ++v) {
      for (std::size_t c = 0; c < keys; ++c) column[c] = state.row(c)[v] * kept[c];
      const T seen = plain_dot(k.data(), column.data(), keys, p.order);
      const T u = beta * (p.call.v.row<T>(t)[head * values + v] - seen);
      for (std::size_t c = 0; c < keys; ++c) state.row(c)[v] = column[c] += k[c] * u;
      out.row<T>(t)[head * values + v] =
          static_cast<T>(p.arithmetic.round(plain_dot(q.data(), column.data(), keys, p.order)));
    }
    state.keep(i);
  }
}

struct PlainSpace {
  const StateSpaceCall& call;
  const std::vector<double>&log, &skip, &bias;
  const Arithmetic& arithmetic;
  int order;
};

template <class T>
void space_head(const PlainSpace& p, const SequenceState& sequence, std::size_t head, const Matrix& out) {
  const StateSpaceCall& call = p.call;
  const std::size_t each = p.log.size() / call.heads, shared = head / (call.heads / call.groups) * call.state;
  StateRows<T> state(sequence, head * call.head_dim, call.head_dim, call.state);
  for (std::size_t i = 0; i < sequence.tokens; ++i) {
    const std::size_t t = sequence.first + i;
    const T *b = call.b.row<T>(t) + shared, *c = call.c.row<T>(t) + shared;
    const T raw =
        static_cast<T>(p.arithmetic.stage(call.step.row<T>(t)[head] + static_cast<T>(p.bias[head])));
    const T size =
        static_cast<T>(std::clamp(p.arithmetic.stage(plain_softplus(raw)), call.least_step, call.most_step));
    for (std::size_t row = 0; row < call.head_dim; ++row) {
      const T x = call.x.row<T>(t)[head * call.head_dim + row];
      T* h = state.row(row);
      for (std::size_t n = 0; n < call.state; ++n) {
        const T rate = static_cast<T>(std::exp(p.log[head * each + (each == 1 ? 0 : n)]));
        h[n] = std::exp(-rate * size) * h[n] + size * x * b[n];
      }
      const T y = plain_dot(c, h, call.state, p.order) + static_cast<T>(p.skip[head]) * x;
      out.row<T>(t)[head * call.head_dim + row] =
          call.rounding == ResultRounding::float32 ? y : static_cast<T>(p.arithmetic.round(y));
    }
    state.keep(i);
  }
}

}  // namespace

Matrix PlainOps::run(const DeltaRuleCall& call) {
  const std::vector<double> log = vector(call.decay_log), bias = vector(call.decay_bias);
  check_shapes(call, log, bias);
  Matrix out = allocate(call.v.rows(), call.value_heads * call.value_dim);
  const PlainDelta plain = {call, log, bias, arithmetic(), order_};
  with_elements(out.real(), [&](auto element) {
    for (const SequenceState& sequence : call.sequences)
      parallel_for(jobs(), call.value_heads,
                   [&](std::size_t head) { delta_head<decltype(element)>(plain, sequence, head, out); });
  });
  return out;
}

Matrix PlainOps::run(const StateSpaceCall& call) {
  const std::vector<double> log = vector(call.decay_log), skip = vector(call.skip),
                            bias = vector(call.step_bias);
  check_shapes(call, log, skip, bias);
  Matrix out = allocate(call.x.rows(), call.x.columns());
  const PlainSpace plain = {call, log, skip, bias, arithmetic(), order_};
  with_elements(out.real(), [&](auto element) {
    for (const SequenceState& sequence : call.sequences)
      parallel_for(jobs(), call.heads,
                   [&](std::size_t head) { space_head<decltype(element)>(plain, sequence, head, out); });
  });
  return out;
}

}  // namespace assay
