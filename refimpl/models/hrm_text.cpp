// HRM-Text: two stacks of layers that a token passes many times (transformers, HrmTextModel), x the scaled embeddings:
//
//   high = x, low = z;   H_cycles times:  L_cycles times  low = norm(L(low + high));   high = norm(H(high + low))
//
// Every pass has a cache of its own, in that order. Norms have no weights. Texts are read causally, as the class does without
// token_type_ids.
#include <fmt/format.h>

#include <cmath>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/models/norms.h"
#include "refimpl/models/rope_table.h"

namespace assay {
namespace {

// [gate | q | k | v], as wide as all heads each.
struct HrmLayer {
  WeightView gqkv, o;
  GatedMlp mlp;
};

class Hrm final : public LanguageModel {
 public:
  explicit Hrm(const Weights& weights);

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return stretched_context(rope_); }
  std::vector<CacheWidth> cache_widths() const override {
    const std::size_t width = heads_ * head_dim_;
    return std::vector<CacheWidth>(high_cycles_ * (low_cycles_ + 1) * low_.size(),
                                   {.key_width = width, .value_width = width, .kv_heads = heads_});
  }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return same_frequencies(rope_, length, other);
  }
  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override;
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    const Matrix y = ops.linear(hidden, head_);
    taps("logits", y);
    return y;
  }

 private:
  struct Step {
    const Batch& batch;
    const RopeAngles& angles;
    Ops& ops;
    const Taps& taps;
  };
  Matrix through(const std::vector<HrmLayer>& stack, Matrix x, std::size_t& pass, const Step& step) const;
  Matrix attend(const HrmLayer& layer, const Matrix& x, std::size_t pass, const Step& step,
                const TapScope& at) const;

  std::size_t heads_ = 0, head_dim_ = 0, high_cycles_ = 1, low_cycles_ = 1;
  double embedding_scale_ = 1;
  RopeRule rope_;
  Norm norm_;
  WeightView embedding_, head_, start_;
  std::vector<HrmLayer> low_, high_;
};

Matrix Hrm::attend(const HrmLayer& layer, const Matrix& x, std::size_t pass, const Step& step,
                   const TapScope& at) const {
  Ops& ops = step.ops;
  const Matrix fused = ops.linear(x, layer.gqkv);
  const std::size_t width = heads_ * head_dim_;
  const Matrix q = fused.part(width, width), k = fused.part(2 * width, width),
               v = fused.part(3 * width, width);
  for (const Matrix& rotated : {q, k})
    ops.rope(rotated,
             {.heads = heads_, .head_dim = head_dim_, .cos = step.angles.cos, .sin = step.angles.sin});
  at("q", q), at("k", k), at("v", v);
  AttentionCall call = {.q = q,
                        .sequences = {},
                        .heads = heads_,
                        .kv_heads = heads_,
                        .qk_dim = head_dim_,
                        .v_dim = head_dim_,
                        .scale = 1 / std::sqrt(static_cast<double>(head_dim_))};
  for (const Batch::Sequence& s : step.batch.sequences) {
    s.cache->put(pass, k.row_range(s.first, s.count), v.row_range(s.first, s.count));
    call.sequences.push_back(
        {s.first, s.count, s.cache->rows(pass) + s.count, s.cache->keys(pass), s.cache->values(pass)});
  }
  Matrix context = ops.attention(call);  // [tokens, heads · head_dim]
  at("attn_context", context);
  context = ops.output_gate(context, fused.part(0, width));
  return ops.linear(context, layer.o);
}

Matrix Hrm::through(const std::vector<HrmLayer>& stack, Matrix x, std::size_t& pass, const Step& step) const {
  Ops& ops = step.ops;
  for (const HrmLayer& layer : stack) {
    const TapScope at(step.taps, "layers", pass);
    step.batch.go_on();
    const Matrix n = norm_(x, ops);
    at("attn_norm", n);
    const Matrix a = attend(layer, n, pass, step, at);
    at("attn_out", a);
    x = ops.add(x, a);
    const Matrix fed = norm_(x, ops);
    at("mlp_norm", fed);
    const Matrix f = layer.mlp.forward(fed, ops);
    at("mlp_out", f);
    x = ops.add(x, f);
    at("out", x);
    ++pass;
  }
  return norm_(x, ops);
}

Matrix Hrm::hidden(const Batch& batch, Ops& ops, const Taps& taps) const {
  if (batch.renumbered())
    throw Error::input("a cache whose rows are renumbered is not computed for passes through one layer");
  Matrix high = ops.multiply(ops.embed(batch.tokens, embedding_), embedding_scale_);  // [tokens, hidden]
  taps("embed", high);
  const RopeAngles angles = rope_angles(rope_, batch, ops);
  const Step step = {batch, angles, ops, taps};
  std::vector<double> start;
  const std::vector<double> one = decode_vector(start_);
  for (std::size_t t = 0; t < batch.tokens.size(); ++t) start.insert(start.end(), one.begin(), one.end());
  Matrix low = ops.upload(start, batch.tokens.size(), one.size());
  std::size_t pass = 0;
  for (std::size_t cycle = 0; cycle < high_cycles_; ++cycle) {
    for (std::size_t i = 0; i < low_cycles_; ++i) low = through(low_, ops.add(low, high), pass, step);
    high = through(high_, ops.add(high, low), pass, step);
  }
  taps("final_norm", high);
  return high;
}

Hrm::Hrm(const Weights& weights) {
  const Hyperparameters& h = hyperparameters(weights.tree());
  ConfigReader config(weights.config(), weights.tree().family);
  const AttentionGeometry& g = weights.tree().attention.at(0);
  heads_ = g.heads, head_dim_ = g.qk_head_dim;
  high_cycles_ = config.size("H_cycles", 2).value(), low_cycles_ = config.size("L_cycles", 3).value();
  embedding_scale_ = h.embedding_scale;
  rope_ = h.ropes.front();
  norm_ = Norm::unweighted(weights.tree().hidden_size, {.epsilon = h.epsilon});
  embedding_ = weights.get({.role = Role::token_embedding});
  head_ = weights.get({.role = Role::output_head});
  start_ = weights.get({.role = Role::other});
  const GatedActivation activation = {.activation = activation_of(h, weights.config())};
  const std::size_t layers = weights.tree().layers / (high_cycles_ * (low_cycles_ + 1));
  for (auto& [name, stack] : {std::pair{"L", &low_}, {"H", &high_}}) {
    for (std::size_t i = 0; i < layers; ++i) {
      const auto get = [&, stack_name = name](std::string_view tensor) {
        const std::string whole = fmt::format("model.{}_module.layers.{}.{}.weight", stack_name, i, tensor);
        const WeightView view = weights.find_named(whole);
        if (!view) throw Error::input("is missing").tensor(whole);
        return view;
      };
      HrmLayer layer{get("attn.gqkv_proj"), get("attn.o_proj"), {}};
      layer.mlp.gate_up = get("mlp.gate_up_proj");
      layer.mlp.down = get("mlp.down_proj");
      layer.mlp.form = activation;
      stack->push_back(layer);
    }
  }
}

std::unique_ptr<LanguageModel> make_hrm_text(const Weights& weights, const ModelOptions&) {
  require_safetensors(weights);
  require_all_heads(weights);
  return std::make_unique<Hrm>(weights);
}

constexpr std::string_view kHrmFamilies[] = {"hrm_text"};
constexpr auto kHrmUsed =
    kin_keys({"rms_norm_eps", "head_dim", "attention_bias", "mlp_bias", "H_cycles", "L_cycles",
              "num_layers_per_stack", "embedding_scale", "initializer_range"});
// How gradients go; and that instructions are looked at both ways, which the class does where token_type_ids say so.
constexpr std::string_view kHrmIdle[] = {"L_bp_cycles", "prefix_lm", "num_key_value_heads", "pretraining_tp"};

}  // namespace

const ModelRule kHrmTextRule = {kHrmFamilies, {}, {kHrmUsed, kHrmIdle}, make_hrm_text};

}  // namespace assay
