#include "refimpl/models/convolved_attention.h"

#include <fmt/format.h>

#include <cmath>

namespace assay {
namespace {

// Of `kernel` inputs of each channel the oldest.
OwnWeight oldest_of(std::size_t kernel, std::size_t channels) {
  OwnWeight shift("a token before", std::vector<double>(kernel * channels));
  shift.rows = channels, shift.columns = kernel;
  for (std::size_t i = 0; i < channels; ++i) shift.values[i * kernel] = 1;
  return shift;
}

// m of every query head, and of every key head their mean.
struct HeadMeans {
  Matrix q, k;
};
HeadMeans means_of(const Matrix& q, const Matrix& k, const AttentionGeometry& g, Ops& ops) {
  const std::size_t width = g.qk_head_dim, each = g.heads / g.kv_heads, columns = g.kv_heads * width;
  const Arithmetic& arithmetic = ops.arithmetic();
  std::vector<double> of_queries = ops.download(q), of_keys = ops.download(k);
  for (std::size_t t = 0; t < q.rows(); ++t) {
    for (std::size_t c = 0; c < columns; ++c) {
      double& key = of_keys[t * columns + c];
      double sum = 0;
      for (std::size_t i = 0; i < each; ++i) {
        const std::size_t head = c / width * each + i;
        double& query = of_queries[(t * g.heads + head) * width + c % width];
        query = arithmetic.round(arithmetic.round(query + key) / 2);
        sum += query;
      }
      key = sum / static_cast<double>(each);
    }
  }
  return {ops.upload(of_queries, q.rows(), q.columns()), ops.upload(of_keys, k.rows(), k.columns())};
}

}  // namespace

ConvolvedAttention::ConvolvedAttention(const Weights& weights, std::size_t layer,
                                       const AttentionGeometry& geometry)
    : geometry_(geometry),
      q_(get_projection(weights, Role::q, layer)),
      k_(get_projection(weights, Role::k, layer)),
      o_(get_projection(weights, Role::attention_output, layer)),
      unit_(Norm::unweighted(geometry.qk_head_dim, {.epsilon = 1e-30})) {
  const std::string path = fmt::format("model.layers.{}.self_attn.", layer), into = path + "qkv_proj.";
  const auto projection = [&](const std::string& name) {
    return Projection{named_weight(weights, into + name + ".weight"),
                      weights.find_named(into + name + ".bias")};
  };
  v_current_ = projection("v_proj_current");
  v_delayed_ = projection("v_proj_delayed");
  depthwise_ = weights.get({.role = Role::convolution, .layer = layer});
  key_factors_ = decode_vector(named_weight(weights, path + "qk_norm.temp"));
  value_shift_ = oldest_of(2, v_delayed_.weight.outputs());
  read_grouped(weights, layer);
  require_shape(key_factors_.size() == geometry.kv_heads, depthwise_);
}

// Before a text both convolutions see zeros, so that the first gives its bias, which the second is given: together they add the
// same to every token.
void ConvolvedAttention::read_grouped(const Weights& weights, std::size_t layer) {
  const WeightView all = weights.get({.role = Role::convolution, .layer = layer, .half = 1});
  const std::size_t width = geometry_.qk_head_dim, heads = geometry_.heads + geometry_.kv_heads,
                    kernel = all.columns, channels = heads * width;
  require_shape(all.rows == channels * width && depthwise_.rows == channels, all);
  std::vector<double> values(all.rows * kernel);  // [channels, width, kernel]
  decode_rows(all, 0, all.rows, values.data());
  const std::string path = fmt::format("model.layers.{}.self_attn.qkv_proj.conv_qk_", layer);
  const std::vector<double> first = decode_vector(named_weight(weights, path + "depthwise.bias"));
  bias_ = decode_vector(named_weight(weights, path + "grouped.bias"));
  matrices_.resize(kernel);
  for (std::size_t lag = 0; lag < kernel; ++lag) {
    for (std::size_t head = 0; head < heads; ++head) {
      OwnWeight m("a matrix of a grouped convolution", std::vector<double>(width * width));
      m.rows = m.columns = width;
      for (std::size_t i = 0; i < width * width; ++i) {
        m.values[i] = values[(head * width * width + i) * kernel + kernel - 1 - lag];
        bias_[head * width + i / width] += m.values[i] * first[head * width + i % width];
      }
      matrices_[lag].push_back(std::move(m));
    }
    if (lag > 0) shifts_.push_back(oldest_of(lag + 1, channels));
  }
}

CacheWidth ConvolvedAttention::cache_width() const {
  CacheWidth width =
      cache_of_heads(geometry_.kv_heads, geometry_.qk_head_dim, geometry_.v_head_dim, geometry_.window);
  width.states = {{depthwise_.columns - 1, depthwise_.rows}, {1, value_shift_.rows}};
  for (const OwnWeight& shift : shifts_) width.states.push_back({shift.columns - 1, shift.rows});
  return width;
}

Matrix ConvolvedAttention::convolved(const Matrix& qk, std::size_t layer, const OwnStep& step) const {
  Ops& ops = step.ops;
  const auto convolution = [&](const Matrix& x, const WeightView& weight, std::size_t part) {
    return ops.run(ConvolutionCall{x, weight, {}, false, states_of(step.batch, layer, part)});
  };
  std::vector<Matrix> lags = {convolution(qk, depthwise_, 0)};  // [tokens, channels] each
  for (std::size_t i = 0; i < shifts_.size(); ++i)
    lags.push_back(convolution(lags.front(), shifts_[i].view(), 2 + i));
  return grouped(lags, ops);
}

Matrix ConvolvedAttention::grouped(const std::vector<Matrix>& lags, Ops& ops) const {
  const std::size_t width = geometry_.qk_head_dim, heads = matrices_.front().size();
  Matrix all;
  for (std::size_t head = 0; head < heads; ++head) {
    Matrix sum;
    for (std::size_t lag = 0; lag < lags.size(); ++lag) {
      const Matrix own = ops.linear(lags[lag].part(head * width, width), matrices_[lag][head].view());
      sum = lag == 0 ? own : ops.add(sum, own);
    }
    all = head == 0 ? sum : ops.concatenate(all, sum);
  }
  return plus_vector(all, bias_, ops);
}

Matrix ConvolvedAttention::values(const Matrix& x, std::size_t layer, const OwnStep& step) const {
  Ops& ops = step.ops;
  Matrix delayed = ops.run(ConvolutionCall{
      ops.linear(x, v_delayed_.weight), value_shift_.view(), {}, false, states_of(step.batch, layer, 1)});
  if (v_delayed_.bias) delayed = plus_vector(delayed, decode_vector(v_delayed_.bias), ops);
  return ops.concatenate(v_current_(x, ops), delayed);
}

Matrix ConvolvedAttention::forward(const Matrix& x, std::size_t layer, const RopeAngles& angles,
                                   const OwnStep& step, const TapScope& at) const {
  Ops& ops = step.ops;
  const AttentionGeometry& g = geometry_;
  const Matrix q_given = q_(x, ops), k_given = k_(x, ops);
  const Matrix c = convolved(ops.concatenate(q_given, k_given), layer, step);
  at("conv", c);
  const HeadMeans means = means_of(q_given, k_given, g, ops);
  const std::size_t queries = g.heads * g.qk_head_dim, keys = g.kv_heads * g.qk_head_dim;
  const Matrix q = unit_(ops.add(c.part(0, queries), means.q), ops);
  const Matrix k = times_vector(unit_(ops.add(c.part(queries, keys), means.k), ops), key_factors_, ops);
  for (const auto& [of, heads] : {std::pair{q, g.heads}, {k, g.kv_heads}})
    ops.rope(of, {.heads = heads, .head_dim = g.qk_head_dim, .cos = angles.cos, .sin = angles.sin});
  const Matrix v = values(x, layer, step);
  at("q", q), at("k", k), at("v", v);
  AttentionCall call = {.q = q,
                        .sequences = {},
                        .heads = g.heads,
                        .kv_heads = g.kv_heads,
                        .qk_dim = g.qk_head_dim,
                        .v_dim = g.v_head_dim,
                        .scale = 1 / std::sqrt(static_cast<double>(g.qk_head_dim)),
                        .window = g.window};
  const Matrix context = attend_to_cache(std::move(call), k, v, layer, step.batch, ops);
  at("attn_context", context);
  return o_(context, ops);
}

}  // namespace assay
