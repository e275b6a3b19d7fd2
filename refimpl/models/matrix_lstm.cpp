// The matrix LSTM of xLSTM (arXiv 2405.04517; xLSTM-7B, 2503.13427): of each head, with gates i and f capped softly and q / √width,
//
//   m' = max(log σ(f) + m, i);   C ← exp(log σ(f) + m - m') C + exp(i - m') k ⊗ v;   n likewise with k
//   h = qᵀC / (max(|qᵀn|, exp(-m')) + ε);   out(LayerNorm of each head(h) · σ(o))
//
// A text begins with C, n and m of zero. What the class keeps is float32.
#include <algorithm>
#include <cmath>

#include "refimpl/models/own_layers.h"
#include "refimpl/models/recurrent_mixer.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

// One head of one sequence: rows of [heads · keys, values] are C, of [heads · keys, 1] n, of [heads, 1] m.
struct MatrixLstmScan {
  Matrix q, k, v, input, forget;  // gates: [tokens, heads]
  std::size_t heads = 0;
  double epsilon = 0;

  Matrix run(const std::vector<SequenceState>& c, const std::vector<SequenceState>& n,
             const std::vector<SequenceState>& m, Ops& ops) const {
    const Matrix out = ops.allocate(v.rows(), v.columns());
    with_elements(v.real(), [&](auto element) {
      for (std::size_t i = 0; i < c.size(); ++i) {
        for (std::size_t head = 0; head < heads; ++head)
          run_head<decltype(element)>(head, c[i], n[i], m[i], ops.arithmetic(), out);
      }
    });
    return out;
  }

 private:
  template <class T>
  void run_head(std::size_t head, const SequenceState& of_c, const SequenceState& of_n,
                const SequenceState& of_m, const Arithmetic& arithmetic, const Matrix& out) const {
    const std::size_t keys = k.columns() / heads, values = v.columns() / heads;
    StateRows<T> c(of_c, head * keys, keys, values), n(of_n, head * keys, keys, 1), m(of_m, head, 1, 1);
    const double scale = 1 / std::sqrt(static_cast<double>(keys));
    std::vector<double> sums(values);
    for (std::size_t t = 0; t < of_c.tokens; ++t) {
      const std::size_t row = of_c.first + t;
      const double i = input.row<T>(row)[head], f = forget.row<T>(row)[head], before = m.row(0)[0];
      const double log_forget = std::min(f, 0.0) - std::log1p(std::exp(-std::abs(f)));
      const double top = std::max(log_forget + before, i);
      const double kept = std::exp(log_forget + before - top), added = std::exp(i - top);
      const T *query = q.row<T>(row) + head * keys, *key = k.row<T>(row) + head * keys,
              *value = v.row<T>(row) + head * values;
      std::fill(sums.begin(), sums.end(), 0.0);
      double weight = 0;
      for (std::size_t a = 0; a < keys; ++a) {
        T* of_key = c.row(a);
        const double asked = arithmetic.round(query[a] * scale), new_key = added * key[a];
        for (std::size_t b = 0; b < values; ++b) {
          of_key[b] = static_cast<T>(kept * of_key[b] + new_key * value[b]);
          sums[b] += asked * of_key[b];
        }
        n.row(a)[0] = static_cast<T>(kept * n.row(a)[0] + new_key);
        weight += asked * n.row(a)[0];
      }
      m.row(0)[0] = static_cast<T>(top);
      const double divisor = std::max(std::abs(weight), std::exp(-top)) + epsilon;
      for (std::size_t b = 0; b < values; ++b)
        out.row<T>(row)[head * values + b] = static_cast<T>(arithmetic.round(sums[b] / divisor));
      c.keep(t), n.keep(t), m.keep(t);
    }
  }
};

class MatrixLstm final : public RecurrentMixer {
 public:
  MatrixLstm(const Weights& weights, std::size_t layer, const RecurrentForm& form)
      : form_(form), heads_(key_heads_of(weights.tree(), layer)) {
    require_all_heads(weights, layer);
    const auto find = [&](Role role) {
      return BiasedWeight{weights.find({.role = role, .layer = layer}),
                          weights.find({.role = role, .layer = layer, .bias = true})};
    };
    fused_ = find(Role::recurrent_in);
    q_ = find(Role::q), k_ = find(Role::k), v_ = find(Role::v), output_gate_ = find(Role::recurrent_gate);
    input_gate_ = find(Role::recurrent_beta), forget_gate_ = find(Role::recurrent_decay);
    out_ = BiasedWeight::get(weights, {.role = Role::recurrent_out, .layer = layer});
    const BiasedWeight norm = find(Role::recurrent_norm);
    values_ = out_.weight.inputs();
    keys_ = fused_.weight ? fused_.weight.outputs() / 2 - values_ : q_.weight.outputs();
    require_shape(heads_ > 0 && keys_ % heads_ == 0 && values_ % heads_ == 0, out_.weight);
    scale_ = decode_vector(norm.weight);
    require_shape(scale_.size() == values_, norm.weight);
    plain_ = Norm::unweighted(values_ / heads_, {.kind = NormKind::layer, .epsilon = form.epsilon});
  }

  std::vector<StateShape> states() const override {
    return {{keys_, values_ / heads_}, {keys_, 1}, {heads_, 1}};
  }

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                 const TapScope& at) const override {
    MatrixLstmScan scan;
    Matrix gate;
    scan.heads = heads_;
    scan.epsilon = form_.divisor_epsilon;
    if (fused_.weight) {
      const Matrix all = fused_(x, ops);
      scan.q = all.part(0, keys_), scan.k = all.part(keys_, keys_), scan.v = all.part(2 * keys_, values_);
      gate = all.part(2 * keys_ + values_, values_);
    } else {
      scan.q = q_(x, ops), scan.k = k_(x, ops), scan.v = v_(x, ops);
      gate = output_gate_(x, ops);
    }
    const Matrix forget = ops.soft_cap(forget_gate_(x, ops), form_.gate_cap);
    const bool both = !input_gate_.weight;  // in one matrix
    scan.input = both ? forget.part(0, heads_) : ops.soft_cap(input_gate_(x, ops), form_.gate_cap);
    scan.forget = both ? forget.part(heads_, heads_) : forget;
    at("q", scan.q), at("k", scan.k), at("v", scan.v);
    const Matrix h =
        scan.run(states_of(batch, layer, 0), states_of(batch, layer, 1), states_of(batch, layer, 2), ops);
    at("scan", h);
    const Matrix normed = times_vector(plain_(h, ops), scale_, ops);
    at("scan_norm", normed);
    return out_(ops.output_gate(normed, gate), ops);
  }

 private:
  RecurrentForm form_;
  std::size_t heads_, keys_ = 0, values_ = 0;
  BiasedWeight fused_, q_, k_, v_, output_gate_, input_gate_, forget_gate_, out_;
  std::vector<double> scale_;
  Norm plain_;
};

}  // namespace

std::unique_ptr<RecurrentMixer> read_matrix_lstm(const Weights& weights, std::size_t layer,
                                                 const RecurrentForm& form) {
  return std::make_unique<MatrixLstm>(weights, layer, form);
}

}  // namespace assay
