// RWKV-7 (arXiv 2503.14456) as flash-linear-attention publishes it: no layer attends. With x' the token before x in what a block is
// given, and μ x' + (1 - μ) x with a μ each:
//
//   time mixing     r, k, v = matrices; w = -e^(-1/2) σ(…), a = σ(…), g = matrices of low rank with tanh, nothing and σ between
//                   v leans on the first layer's by σ of one more;  κ = k · k_k made a unit of each head;  k ← k (1 + (a - 1) k_a)
//                   of each head:  S ← diag(e^w) S - (a κ) ⊗ (κᵀ S) + k ⊗ v;  o = rᵀ S
//                   output((norm of each head(o) + (Σ r · k · r_k) v) · g)
//   channel mixing  value(max(key, 0)²)
//
// Source: flash-linear-attention 0.6 (layers/rwkv7.py, models/rwkv7), whose states are float32 at least.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "refimpl/models/kin_rules.h"
#include "refimpl/models/own_layers.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

template <class Function>
Matrix mapped(const Matrix& x, const Function& function, Ops& ops) {
  std::vector<double> values = ops.download(x);
  for (double& value : values) value = function(value);
  return ops.upload(values, x.rows(), x.columns());
}

// Of each head a matrix: rows of what keys say, columns of what values do.
struct GooseScan {
  Matrix r, w, k, v, unit, rate;  // [tokens, heads · width]
  std::size_t heads, width;
  std::vector<SequenceState> states;

  Matrix run(Ops& ops) const {
    const Matrix out = ops.allocate(k.rows(), k.columns());
    with_elements(k.real(), [&](auto element) {
      for (const SequenceState& state : states) {
        for (std::size_t head = 0; head < heads; ++head)
          run_head<decltype(element)>(state, head, ops.arithmetic(), out);
      }
    });
    return out;
  }

 private:
  template <class T>
  void run_head(const SequenceState& sequence, std::size_t head, const Arithmetic& arithmetic,
                const Matrix& out) const {
    StateRows<T> state(sequence, head * width, width, width);
    for (std::size_t t = 0; t < sequence.tokens; ++t) {
      const std::size_t row = sequence.first + t;
      const auto of = [&](const Matrix& m) { return m.row<T>(row) + head * width; };
      const T *rs = of(r), *ws = of(w), *ks = of(k), *vs = of(v), *units = of(unit), *rates = of(rate);
      std::vector<double> said(width), sum(width);  // κᵀ S, rᵀ S
      for (std::size_t i = 0; i < width; ++i)
        for (std::size_t j = 0; j < width; ++j) said[j] += units[i] * static_cast<double>(state.row(i)[j]);
      for (std::size_t i = 0; i < width; ++i) {
        const double kept = std::exp(static_cast<double>(ws[i])),
                     taken = static_cast<double>(units[i]) * rates[i];
        for (std::size_t j = 0; j < width; ++j) {
          T& s = state.row(i)[j];
          s = static_cast<T>(kept * s - taken * said[j] + static_cast<double>(ks[i]) * vs[j]);
          sum[j] += static_cast<double>(rs[i]) * s;
        }
      }
      T* made = out.row<T>(row) + head * width;
      for (std::size_t j = 0; j < width; ++j) made[j] = static_cast<T>(arithmetic.round(sum[j]));
      state.keep(t);
    }
  }
};

enum class Between : std::uint8_t { nothing, tanh, sigmoid };

struct LowRankMatrices {
  WeightView down, up, bias;

  static LowRankMatrices find(const Weights& weights, const std::string& name) {
    return {weights.find_named(name + ".lora.0.weight"), weights.find_named(name + ".lora.2.weight"),
            weights.find_named(name + ".lora.2.bias")};
  }
  Matrix operator()(const Matrix& x, Between between, Ops& ops) const {
    Matrix y = ops.linear(x, down);
    if (between == Between::tanh)
      y = mapped(
          y, [](double value) { return std::tanh(value); }, ops);
    if (between == Between::sigmoid) y = mapped(y, logistic, ops);
    return ops.linear(y, up, bias);
  }
};

struct GooseLayer {
  Norm entry_norm, attention_norm, mlp_norm;  // the first in layer 0 alone
  std::vector<double> mix_r, mix_w, mix_k, mix_v, mix_a, mix_g, mix_mlp, unit, rate, skip;
  WeightView r, k, v, output, mlp_k, mlp_v;
  LowRankMatrices decay, value, learning, gate;  // the second in all but layer 0
  std::vector<double> head_weight, head_bias;
};

GooseLayer read_goose_layer(const Weights& weights, std::size_t index, const NormRule& rule) {
  const std::string layer = fmt::format("model.layers.{}.", index), time = layer + "attn.";
  const auto norm = [&](const std::string& name) {
    return Norm(weights.find_named(layer + name + ".weight"), weights.find_named(layer + name + ".bias"),
                rule);
  };
  // Of any shape, on end.
  const auto numbers = [&](const std::string& name) {
    const WeightView view = named_weight(weights, name);
    std::vector<double> all;
    for (std::size_t i = 0; i < view.rows; ++i) {
      const std::vector<double> row = decode_vector(view.row_range(i, 1));
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  };
  const auto matrix = [&](const std::string& name) { return named_weight(weights, name + ".weight"); };
  GooseLayer l;
  l.entry_norm = norm("pre_norm");
  l.attention_norm = norm("attn_norm");
  l.mlp_norm = norm("ffn_norm");
  l.mix_r = numbers(time + "x_r"), l.mix_w = numbers(time + "x_w"), l.mix_k = numbers(time + "x_k");
  l.mix_v = numbers(time + "x_v"), l.mix_a = numbers(time + "x_a"), l.mix_g = numbers(time + "x_g");
  l.unit = numbers(time + "k_k"), l.rate = numbers(time + "k_a"), l.skip = numbers(time + "r_k");
  l.r = matrix(time + "r_proj"), l.k = matrix(time + "k_proj"), l.v = matrix(time + "v_proj");
  l.output = matrix(time + "o_proj");
  l.decay = LowRankMatrices::find(weights, time + "w_lora"),
  l.learning = LowRankMatrices::find(weights, time + "a_lora");
  l.gate = LowRankMatrices::find(weights, time + "g_lora"),
  l.value = LowRankMatrices::find(weights, time + "v_lora");
  l.head_weight = numbers(time + "g_norm.weight"), l.head_bias = numbers(time + "g_norm.bias");
  l.mix_mlp = numbers(layer + "ffn.x_k");
  l.mlp_k = matrix(layer + "ffn.key"), l.mlp_v = matrix(layer + "ffn.value");
  return l;
}

class Rwkv7 final : public OwnLayers {
 public:
  explicit Rwkv7(const Weights& weights)
      : OwnLayers(weights, {NormKind::layer, NormForm::weight_last, hyperparameters(weights.tree()).epsilon}),
        hidden_(weights.tree().hidden_size),
        heads_(weights.tree().recurrent.at(0).heads) {
    const NormRule rule = {NormKind::layer, NormForm::weight_last, settings().epsilon};
    width_ = hidden_ / heads_;
    shift_ = OwnWeight("the token before", std::vector<double>(2 * hidden_));
    shift_.rows = hidden_, shift_.columns = 2;
    for (std::size_t i = 0; i < hidden_; ++i) shift_.values[2 * i] = 1;
    for (std::size_t i = 0; i < weights.tree().layers; ++i)
      layers_.push_back(read_goose_layer(weights, i, rule));
  }

 protected:
  // The last input of time mixing, its matrices, the last input of channel mixing.
  CacheWidth cache_width(std::size_t) const override {
    CacheWidth width;
    width.states = {{1, hidden_}, {hidden_, width_}, {1, hidden_}};
    return width;
  }

  // Beside the stream: the first layer's values.
  Matrix layer(std::size_t index, const Matrix& given, const OwnStep& step, const TapScope& at,
               std::vector<Matrix>& beside) const override {
    const GooseLayer& l = layers_[index];
    Ops& ops = step.ops;
    Matrix x = l.entry_norm(given, ops);
    const Matrix seen = l.attention_norm(x, ops);
    at("attn_norm", seen);
    const Matrix attended = time_mixing(l, index, seen, step, at, beside);
    at("attn_out", attended);
    at("attn_residual", x = ops.add(x, attended));
    const Matrix fed = l.mlp_norm(x, ops);
    at("mlp_norm", fed);
    const Matrix key = ops.linear(mixed(fed, difference(fed, index, 2, step), l.mix_mlp, ops), l.mlp_k);
    const Matrix out = ops.linear(ops.activation(key, Activation::relu_squared), l.mlp_v);
    at("mlp_out", out);
    return ops.add(x, out);
  }

 private:
  // x' - x
  Matrix difference(const Matrix& x, std::size_t index, std::size_t part, const OwnStep& step) const {
    Ops& ops = step.ops;
    return ops.add(ops.run(ConvolutionCall{x, shift_.view(), {}, false, states_of(step.batch, index, part)}),
                   ops.multiply(x, -1));
  }
  static Matrix mixed(const Matrix& x, const Matrix& difference, const std::vector<double>& mix, Ops& ops) {
    return ops.add(x, times_vector(difference, mix, ops));
  }

  Matrix time_mixing(const GooseLayer& l, std::size_t index, const Matrix& x, const OwnStep& step,
                     const TapScope& at, std::vector<Matrix>& beside) const {
    Ops& ops = step.ops;
    const Matrix change = difference(x, index, 0, step);
    const auto of = [&](const std::vector<double>& mix) { return mixed(x, change, mix, ops); };
    const Matrix r = ops.linear(of(l.mix_r), l.r), k = ops.linear(of(l.mix_k), l.k), xv = of(l.mix_v);
    const Matrix w = mapped(
        l.decay(of(l.mix_w), Between::tanh, ops), [](double y) { return -std::exp(-0.5) * logistic(y); },
        ops);
    const Matrix a = mapped(l.learning(of(l.mix_a), Between::nothing, ops), logistic, ops);
    const Matrix g = l.gate(of(l.mix_g), Between::sigmoid, ops);
    Matrix v = ops.linear(xv, l.v);
    if (index == 0)
      beside = {v};
    else
      v = leaning(v, beside.at(0), l.value(xv, Between::nothing, ops), ops);
    const Matrix unit = units(k, l.unit, ops), key = slowed(k, a, l.rate, ops);
    at("r", r), at("k", key), at("v", v);
    const Matrix o =
        GooseScan{r, w, key, v, unit, a, heads_, width_, states_of(step.batch, index, 1)}.run(ops);
    at("scan", o);
    const Matrix normed = norm_of_heads(o, l, ops);
    at("scan_norm", normed);
    return ops.linear(ops.scale(ops.add(normed, skipping(r, key, v, l.skip, ops)), g), l.output);
  }

  static Matrix leaning(const Matrix& v, const Matrix& first, const Matrix& share, Ops& ops) {
    std::vector<double> values = ops.download(v);
    const std::vector<double> firsts = ops.download(first), shares = ops.download(share);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] += ops.arithmetic().round(logistic(shares[i])) * (firsts[i] - values[i]);
    return ops.upload(values, v.rows(), v.columns());
  }
  // What the length is added up of is k · k_k as rounded.
  Matrix units(const Matrix& k, const std::vector<double>& factors, Ops& ops) const {
    std::vector<double> values = ops.download(times_vector(k, factors, ops));
    for (std::size_t at = 0; at < values.size(); at += width_) {
      double sum = 0;
      for (std::size_t i = 0; i < width_; ++i) sum += values[at + i] * values[at + i];
      const double length = std::max(std::sqrt(sum), 1e-12);
      for (std::size_t i = 0; i < width_; ++i) values[at + i] /= length;
    }
    return ops.upload(values, k.rows(), k.columns());
  }
  static Matrix slowed(const Matrix& k, const Matrix& a, const std::vector<double>& factors, Ops& ops) {
    std::vector<double> values = ops.download(k);
    const std::vector<double> rates = ops.download(a);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] *= 1 + (rates[i] - 1) * factors[i % factors.size()];
    return ops.upload(values, k.rows(), k.columns());
  }
  // Its ε is that of the others times a head's width.
  Matrix norm_of_heads(const Matrix& o, const GooseLayer& l, Ops& ops) const {
    std::vector<double> values = ops.download(o);
    const double count = static_cast<double>(width_), epsilon = settings().epsilon * count;
    for (std::size_t at = 0; at < values.size(); at += width_) {
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < width_; ++i) mean += values[at + i] / count;
      for (std::size_t i = 0; i < width_; ++i) variance += std::pow(values[at + i] - mean, 2) / count;
      for (std::size_t i = 0; i < width_; ++i) {
        const std::size_t channel = (at + i) % hidden_;
        values[at + i] = (values[at + i] - mean) / std::sqrt(variance + epsilon) * l.head_weight[channel] +
                         l.head_bias[channel];
      }
    }
    return ops.upload(values, o.rows(), o.columns());
  }
  // (Σ r · k · r_k) v of each head
  Matrix skipping(const Matrix& r, const Matrix& k, const Matrix& v, const std::vector<double>& factors,
                  Ops& ops) const {
    const std::vector<double> rs = ops.download(r), ks = ops.download(k);
    std::vector<double> values = ops.download(v);
    for (std::size_t at = 0; at < values.size(); at += width_) {
      double sum = 0;
      for (std::size_t i = 0; i < width_; ++i) sum += rs[at + i] * ks[at + i] * factors[(at + i) % hidden_];
      for (std::size_t i = 0; i < width_; ++i) values[at + i] *= sum;
    }
    return ops.upload(values, v.rows(), v.columns());
  }

  std::size_t hidden_, heads_, width_ = 0;
  OwnWeight shift_;  // a convolution of two tokens, of which it takes the first
  std::vector<GooseLayer> layers_;
};

std::unique_ptr<LanguageModel> make_rwkv7(const Weights& weights, const ModelOptions&) {
  require_safetensors(weights);
  require_all_heads(weights);
  return std::make_unique<Rwkv7>(weights);
}

constexpr std::string_view kRwkv7Families[] = {"rwkv7"};
constexpr std::string_view kRwkv7Used[] = {"vocab_size",
                                           "hidden_size",
                                           "num_hidden_layers",
                                           "head_dim",
                                           "num_heads",
                                           "value_dim",
                                           "decay_low_rank_dim",
                                           "gate_low_rank_dim",
                                           "a_low_rank_dim",
                                           "v_low_rank_dim",
                                           "intermediate_size",
                                           "hidden_ratio",
                                           "norm_eps",
                                           "norm_first",
                                           "norm_bias",
                                           "attn",
                                           "tie_word_embeddings",
                                           "max_position_embeddings"};
// How kernels compute it.
constexpr std::string_view kRwkv7Idle[] = {"attn_mode", "fuse_norm", "fuse_cross_entropy",
                                           "fuse_linear_cross_entropy", "use_l2warp"};
constexpr FixedKey kRwkv7Fixed[] = {{"hidden_act", "\"sqrelu\""}};

}  // namespace

const ModelRule kRwkv7Rule = {kRwkv7Families, {}, {kRwkv7Used, kRwkv7Idle, kRwkv7Fixed}, make_rwkv7};

}  // namespace assay
