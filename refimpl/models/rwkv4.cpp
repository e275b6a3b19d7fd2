// RWKV-4 (arXiv 2305.13048; transformers' modeling_rwkv.py): no layer attends. With x' the token before x in what a block is given,
//
//   time mixing     k, v, r = matrices of μ x + (1 - μ) x', with a μ each;  output(σ(r) · wkv(k, v))
//                   wkv of a channel: Σ_{i<t} exp(kᵢ - (t - 1 - i) w) vᵢ + exp(u + k_t) v_t over the same without v
//   channel mixing  k, r likewise;  σ(r) · value(max(key, 0)²)
//
// w = exp(time_decay), u = time_first. Sums are kept less their greatest exponent, as the class keeps them. Every rescale_every
// layers the stream is halved, and so is what later blocks add to it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "refimpl/models/kin_rules.h"
#include "refimpl/models/own_layers.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

constexpr double kNoExponent = -1e38;  // of a sum of nothing

// Numerator, denominator and greatest exponent of every channel: states [width, 3].
struct WkvScan {
  Matrix k, v;  // [tokens, width]
  const std::vector<double>*decay, *first;
  std::vector<SequenceState> states;

  Matrix run(Ops& ops) const {
    const Matrix out = ops.allocate(k.rows(), k.columns());
    with_elements(k.real(), [&](auto element) {
      for (const SequenceState& state : states) {
        for (std::size_t channel = 0; channel < k.columns(); ++channel)
          run_channel<decltype(element)>(state, channel, ops.arithmetic(), out);
      }
    });
    return out;
  }

 private:
  template <class T>
  void run_channel(const SequenceState& sequence, std::size_t channel, const Arithmetic& arithmetic,
                   const Matrix& out) const {
    StateRows<T> state(sequence, channel, 1, 3);
    T* s = state.row(0);
    if (sequence.before.empty()) s[2] = static_cast<T>(kNoExponent);
    const double w = (*decay)[channel], u = (*first)[channel];
    for (std::size_t t = 0; t < sequence.tokens; ++t) {
      const double key = k.row<T>(sequence.first + t)[channel], value = v.row<T>(sequence.first + t)[channel];
      const double greatest = s[2], top = std::max(greatest, u + key);
      const double before = std::exp(greatest - top), now = std::exp(u + key - top);
      const double y = (before * s[0] + now * value) / (before * s[1] + now);
      out.row<T>(sequence.first + t)[channel] = static_cast<T>(arithmetic.round(y));
      const double next = std::max(greatest - w, key);
      const double kept = std::exp(greatest - w - next), added = std::exp(key - next);
      s[0] = static_cast<T>(kept * s[0] + added * value);
      s[1] = static_cast<T>(kept * s[1] + added);
      s[2] = static_cast<T>(next);
      state.keep(t);
    }
  }
};

// A matrix of μ x + (1 - μ) x'.
struct MixedProjection {
  WeightView weight;
  std::vector<double> mix;

  static MixedProjection get(const Weights& weights, const std::string& block, const std::string& name) {
    const WeightView mix = named_weight(weights, block + "time_mix_" + name);
    MixedProjection p{named_weight(weights, block + name + ".weight"), decode_vector(mix)};
    require_shape(p.mix.size() == p.weight.inputs(), mix);
    return p;
  }
  Matrix operator()(const Matrix& x, const Matrix& before, Ops& ops) const {
    std::vector<double> rest = mix;
    for (double& share : rest) share = 1 - share;
    return ops.linear(ops.add(times_vector(x, mix, ops), times_vector(before, rest, ops)), weight);
  }
};

struct RwkvLayer {
  Norm entry_norm, attention_norm, mlp_norm;  // the first in layer 0 alone
  MixedProjection k, v, r, mlp_k, mlp_r;
  WeightView output, mlp_v;
  std::vector<double> decay, first;
};

RwkvLayer read_rwkv_layer(const Weights& weights, std::size_t index, const NormRule& rule) {
  const std::string layer = fmt::format("rwkv.blocks.{}.", index), time = layer + "attention.",
                    channel = layer + "feed_forward.";
  const auto norm = [&](const std::string& name) {
    return Norm(weights.find_named(layer + name + ".weight"), weights.find_named(layer + name + ".bias"),
                rule);
  };
  RwkvLayer l;
  l.entry_norm = norm("pre_ln");
  l.attention_norm = norm("ln1");
  l.mlp_norm = norm("ln2");
  l.k = MixedProjection::get(weights, time, "key");
  l.v = MixedProjection::get(weights, time, "value");
  l.r = MixedProjection::get(weights, time, "receptance");
  l.output = named_weight(weights, time + "output.weight");
  l.mlp_k = MixedProjection::get(weights, channel, "key");
  l.mlp_r = MixedProjection::get(weights, channel, "receptance");
  l.mlp_v = named_weight(weights, channel + "value.weight");
  l.decay = decode_vector(named_weight(weights, time + "time_decay"));
  for (double& decay : l.decay) decay = std::exp(decay);
  l.first = decode_vector(named_weight(weights, time + "time_first"));
  return l;
}

class Rwkv4 final : public OwnLayers {
 public:
  // The norm behind the layers has the ε of its class, whatever layer_norm_epsilon says.
  Rwkv4(const Weights& weights, std::size_t rescale_every)
      : OwnLayers(weights, {NormKind::layer, NormForm::weight_last, 1e-5}), rescale_every_(rescale_every) {
    const NormRule rule = {NormKind::layer, NormForm::weight_last, settings().epsilon};
    hidden_ = weights.tree().hidden_size;
    shift_ = OwnWeight("the token before", std::vector<double>(2 * hidden_));
    shift_.rows = hidden_, shift_.columns = 2;
    for (std::size_t i = 0; i < hidden_; ++i) shift_.values[2 * i] = 1;
    for (std::size_t i = 0; i < weights.tree().layers; ++i)
      layers_.push_back(read_rwkv_layer(weights, i, rule));
  }

 protected:
  // The last input of time mixing, its sums, the last input of channel mixing.
  CacheWidth cache_width(std::size_t index) const override {
    CacheWidth width;
    width.states = {{1, hidden_}, {layers_[index].decay.size(), 3}, {1, hidden_}};
    return width;
  }

  Matrix layer(std::size_t index, const Matrix& given, const OwnStep& step, const TapScope& at,
               std::vector<Matrix>&) const override {
    const RwkvLayer& l = layers_[index];
    Ops& ops = step.ops;
    Matrix x = l.entry_norm(given, ops);
    const Matrix seen = l.attention_norm(x, ops);
    at("attn_norm", seen);
    const Matrix attended = shrunk(time_mixing(l, index, seen, step, at), index, ops);
    at("attn_out", attended);
    at("attn_residual", x = ops.add(x, attended));
    const Matrix fed = l.mlp_norm(x, ops);
    at("mlp_norm", fed);
    const Matrix out = shrunk(channel_mixing(l, index, fed, step), index, ops);
    at("mlp_out", out);
    return ops.add(x, out);
  }
  Matrix passed_on(std::size_t index, const Matrix& x, Ops& ops) const override {
    return rescale_every_ != 0 && (index + 1) % rescale_every_ == 0 ? ops.multiply(x, 0.5) : x;
  }

 private:
  Matrix before(const Matrix& x, std::size_t index, std::size_t part, const OwnStep& step) const {
    return step.ops.run(ConvolutionCall{x, shift_.view(), {}, false, states_of(step.batch, index, part)});
  }
  Matrix shrunk(const Matrix& x, std::size_t index, Ops& ops) const {
    const std::size_t halvings = rescale_every_ == 0 ? 0 : index / rescale_every_;
    return halvings == 0 ? x : ops.multiply(x, std::exp2(-static_cast<double>(halvings)));
  }

  Matrix time_mixing(const RwkvLayer& l, std::size_t index, const Matrix& x, const OwnStep& step,
                     const TapScope& at) const {
    Ops& ops = step.ops;
    const Matrix shifted = before(x, index, 0, step);
    const Matrix k = l.k(x, shifted, ops), v = l.v(x, shifted, ops);  // [tokens, width]
    at("k", k), at("v", v);
    const Matrix sums = WkvScan{k, v, &l.decay, &l.first, states_of(step.batch, index, 1)}.run(ops);
    at("scan", sums);
    return ops.linear(ops.output_gate(sums, l.r(x, shifted, ops)), l.output);
  }
  Matrix channel_mixing(const RwkvLayer& l, std::size_t index, const Matrix& x, const OwnStep& step) const {
    Ops& ops = step.ops;
    const Matrix shifted = before(x, index, 2, step);
    const Matrix k = ops.activation(l.mlp_k(x, shifted, ops), Activation::relu_squared);
    return ops.output_gate(ops.linear(k, l.mlp_v), l.mlp_r(x, shifted, ops));
  }

  std::size_t rescale_every_, hidden_ = 0;
  OwnWeight shift_;  // a convolution of two tokens, of which it takes the first
  std::vector<RwkvLayer> layers_;
};

std::unique_ptr<LanguageModel> make_rwkv4(const Weights& weights, const ModelOptions&) {
  require_safetensors(weights);
  require_all_heads(weights);
  const double every = ConfigReader(weights.config(), "RWKV-4").real("rescale_every", 6, -1e9, 1e9);
  return std::make_unique<Rwkv4>(weights, every < 1 ? 0 : static_cast<std::size_t>(every));
}

constexpr std::string_view kRwkvFamilies[] = {"rwkv"};
constexpr std::string_view kRwkvUsed[] = {
    "vocab_size",        "hidden_size",        "num_hidden_layers", "attention_hidden_size",
    "intermediate_size", "layer_norm_epsilon", "rescale_every",     "tie_word_embeddings"};
// How long texts of training were.
constexpr std::string_view kRwkvIdle[] = {"context_length", "max_position_embeddings"};

}  // namespace

const ModelRule kRwkv4Rule = {kRwkvFamilies, {}, {kRwkvUsed, kRwkvIdle}, make_rwkv4};

}  // namespace assay
