// The gated delta rule (Yang et al. 2024, arXiv 2412.06464; by channel: Kimi Linear, 2510.26692). Of each value head,
//
//   recurrent   S ← diag(exp gₜ) S;  uₜ = βₜ (vₜ - kₜᵀS);  S ← S + kₜ ⊗ uₜ;  oₜ = qₜᵀS
//   chunked     with Gᵢ = g₁ + … + gᵢ within a chunk that begins at S₀, and a(x, i, j) = Σ_c xᵢ k_j exp(Gᵢ - G_j):
//               uᵢ = βᵢ (vᵢ - (kᵢ exp Gᵢ)ᵀS₀ - Σ_{j<i} a(k, i, j) u_j)
//               oᵢ = (qᵢ exp Gᵢ)ᵀS₀ + Σ_{j≤i} a(q, i, j) u_j
//               S  = diag(exp G_n) S₀ + Σ_j (k_j exp(G_n - G_j)) ⊗ u_j
//
// Sums are in double; the state is rounded as activations lie in memory, float32 even under bf16: behind every token in
// the recurrent form, so that it does not matter where a prompt is cut, and behind every chunk in the other. Under bf16
// σ is rounded, as a sigmoid of bfloat16 is; a β of twice that is as exact.
#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/ops/recurrence.h"
#include "refimpl/ops/reference.h"

namespace assay {
namespace {

// What a token brings to one value head.
struct TokenOfHead {
  std::vector<double> q, k, v, g;  // g: one, or one a channel
  double beta = 0;
};

// One value head of one sequence.
template <class T>
class DeltaHead {
 public:
  DeltaHead(const DeltaRuleCall& call, const SequenceState& sequence, const Arithmetic& arithmetic,
            std::size_t head, double rate, std::span<const double> bias)
      : call_(call),
        sequence_(sequence),
        arithmetic_(arithmetic),
        head_(head),
        rate_(rate),
        bias_(bias),
        state_(sequence, head * call.key_dim, call.key_dim, call.value_dim) {}

  void run(const Matrix& out) {
    if (call_.form == ScanForm::recurrent) {
      for (std::size_t t = 0; t < sequence_.tokens; ++t) {
        step(token(t), output(out, t));
        state_.keep(t);
      }
      return;
    }
    for (std::size_t t = 0; t < sequence_.tokens;) {
      const std::size_t count = state_.chunk(t);
      chunk(t, count, out);
      t += count;
      state_.keep(t - 1);
    }
  }

 private:
  T* output(const Matrix& out, std::size_t t) const {
    return out.row<T>(sequence_.first + t) + head_ * call_.value_dim;
  }

  std::vector<double> read(const Matrix& x, std::size_t t, std::size_t first, std::size_t count) const {
    const T* row = x.row<T>(sequence_.first + t) + first;
    return {row, row + count};
  }
  std::vector<double> unit(const Matrix& x, std::size_t t, double scale) const {
    const std::size_t shared = call_.value_heads / call_.key_heads;
    std::vector<double> values = read(x, t, head_ / shared * call_.key_dim, call_.key_dim);
    const double length =
        call_.norm_epsilon == 0
            ? 1
            : std::sqrt(dot(values.data(), values.data(), values.size()) + call_.norm_epsilon);
    for (double& value : values) value = value / length * scale;
    return values;
  }

  TokenOfHead token(std::size_t t) const {
    const std::size_t channels = bias_.size();  // of decay, in this head
    TokenOfHead token{
        unit(call_.q, t, call_.scale), unit(call_.k, t, 1),
        read(call_.v, t, head_ * call_.value_dim, call_.value_dim),
        read(call_.decay, t, head_ * channels, channels),
        call_.beta_scale * arithmetic_.stage(logistic(*(call_.beta.row<T>(sequence_.first + t) + head_)))};
    for (std::size_t c = 0; c < channels; ++c) {
      const double x = token.g[c] + bias_[c];
      token.g[c] = call_.decay_floor != 0 ? call_.decay_floor * logistic(rate_ * x) : -rate_ * softplus(x);
    }
    return token;
  }

  void step(const TokenOfHead& token, T* out) {
    const std::size_t keys = call_.key_dim, values = call_.value_dim;
    std::vector<double> seen(values), o(values), kept(keys);
    for (std::size_t c = 0; c < keys; ++c) {
      kept[c] = std::exp(token.g[token.g.size() == 1 ? 0 : c]);
      const double factor = kept[c] * token.k[c];
      const T* s = state_.row(c);
      for (std::size_t i = 0; i < values; ++i) seen[i] += factor * static_cast<double>(s[i]);
    }
    for (std::size_t i = 0; i < values; ++i) seen[i] = token.beta * (token.v[i] - seen[i]);
    for (std::size_t c = 0; c < keys; ++c) {
      T* s = state_.row(c);
      for (std::size_t i = 0; i < values; ++i) {
        s[i] = static_cast<T>(kept[c] * static_cast<double>(s[i]) + token.k[c] * seen[i]);
        o[i] += token.q[c] * static_cast<double>(s[i]);
      }
    }
    for (std::size_t i = 0; i < values; ++i) out[i] = static_cast<T>(arithmetic_.round(o[i]));
  }

  // Σ_c xᵢ k_j exp(Gᵢ - G_j)
  double weight(const std::vector<double>& x, const TokenOfHead& i, const TokenOfHead& j) const {
    if (i.g.size() == 1) return dot(x.data(), j.k.data(), x.size()) * std::exp(i.g[0] - j.g[0]);
    double sum = 0;
    for (std::size_t c = 0; c < x.size(); ++c) sum += x[c] * j.k[c] * std::exp(i.g[c] - j.g[c]);
    return sum;
  }
  // (x exp G)ᵀS₀
  std::vector<double> through_state(const std::vector<double>& x, const TokenOfHead& token) {
    std::vector<double> sum(call_.value_dim);
    for (std::size_t c = 0; c < call_.key_dim; ++c) {
      const double factor = x[c] * std::exp(token.g[token.g.size() == 1 ? 0 : c]);
      const T* s = state_.row(c);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * static_cast<double>(s[i]);
    }
    return sum;
  }

  void chunk(std::size_t first, std::size_t count, const Matrix& out) {
    std::vector<TokenOfHead> tokens;  // their g summed up: G
    for (std::size_t i = 0; i < count; ++i) {
      tokens.push_back(token(first + i));
      for (std::size_t c = 0; i > 0 && c < tokens[i].g.size(); ++c) tokens[i].g[c] += tokens[i - 1].g[c];
    }
    std::vector<std::vector<double>> u;
    for (std::size_t i = 0; i < count; ++i) {
      const TokenOfHead& token = tokens[i];
      std::vector<double> seen = through_state(token.k, token);
      for (std::size_t j = 0; j < i; ++j) add(seen, weight(token.k, token, tokens[j]), u[j]);
      for (std::size_t n = 0; n < seen.size(); ++n) seen[n] = token.beta * (token.v[n] - seen[n]);
      u.push_back(std::move(seen));
      std::vector<double> o = through_state(token.q, token);
      for (std::size_t j = 0; j <= i; ++j) add(o, weight(token.q, token, tokens[j]), u[j]);
      for (std::size_t n = 0; n < o.size(); ++n)
        output(out, first + i)[n] = static_cast<T>(arithmetic_.round(o[n]));
    }
    for (std::size_t c = 0; c < call_.key_dim; ++c) {
      const std::size_t g = tokens.back().g.size() == 1 ? 0 : c;
      T* s = state_.row(c);
      std::vector<double> sum(s, s + call_.value_dim);
      for (double& value : sum) value *= std::exp(tokens.back().g[g]);
      for (std::size_t j = 0; j < count; ++j)
        add(sum, tokens[j].k[c] * std::exp(tokens.back().g[g] - tokens[j].g[g]), u[j]);
      std::transform(sum.begin(), sum.end(), s, [](double value) { return static_cast<T>(value); });
    }
  }
  static void add(std::vector<double>& sum, double factor, const std::vector<double>& x) {
    for (std::size_t i = 0; i < x.size(); ++i) sum[i] += factor * x[i];
  }

  const DeltaRuleCall& call_;
  const SequenceState& sequence_;
  const Arithmetic& arithmetic_;
  std::size_t head_;
  double rate_;                   // exp(A_log)
  std::span<const double> bias_;  // of this head's decays
  StateRows<T> state_;
};

}  // namespace

void check_shapes(const DeltaRuleCall& call, const std::vector<double>& log,
                  const std::vector<double>& bias) {
  const std::size_t keys = call.key_heads * call.key_dim, values = call.value_heads * call.value_dim;
  const std::size_t tokens = call.v.rows();
  const auto is = [&](const Matrix& x, std::size_t columns) {
    return x.rows() == tokens && x.columns() == columns;
  };
  const bool by_channel = is(call.decay, call.value_heads * call.key_dim);
  if (call.key_heads == 0 || call.value_heads % call.key_heads != 0 || !is(call.q, keys) ||
      !is(call.k, keys) || !is(call.v, values) || !is(call.beta, call.value_heads) ||
      (!by_channel && !is(call.decay, call.value_heads)))
    throw Error::internal(fmt::format("delta rule: q [{}, {}], v [{}, {}], decay [{}, {}] of {} and {} heads",
                                      call.q.rows(), call.q.columns(), tokens, call.v.columns(),
                                      call.decay.rows(), call.decay.columns(), call.key_heads,
                                      call.value_heads));
  if (log.size() < call.value_heads || bias.size() != call.decay.columns())
    throw Error::input(fmt::format("a delta rule of {} heads has {} decays and {} biases of them",
                                   call.value_heads, log.size(), bias.size()))
        .tensor(*call.decay_log.name);
  check_states("delta rule", call.sequences, tokens, call.value_heads * call.key_dim, call.value_dim);
}

Matrix ReferenceOps::run(const DeltaRuleCall& call) {
  const std::vector<double> log = vector_of(call.decay_log, arithmetic());
  const std::vector<double> bias = vector_of(call.decay_bias, arithmetic());
  check_shapes(call, log, bias);
  const std::size_t channels = bias.size() / call.value_heads;
  Matrix out = allocate(call.v.rows(), call.value_heads * call.value_dim);
  with_elements(out.real(), [&](auto element) {
    for (const SequenceState& sequence : call.sequences) {
      parallel_for(jobs(), call.value_heads, [&](std::size_t head) {
        DeltaHead<decltype(element)>(call, sequence, arithmetic(), head, std::exp(log[head]),
                                     std::span(bias).subspan(head * channels, channels))
            .run(out);
      });
    }
  });
  return out;
}

}  // namespace assay
