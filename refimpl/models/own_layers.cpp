#include "refimpl/models/own_layers.h"

#include <algorithm>

#include "core/system/error.h"

namespace assay {
namespace {

Matrix rows_of(const std::vector<double>& row, std::size_t count, Ops& ops) {
  std::vector<double> rows;
  rows.reserve(count * row.size());
  for (std::size_t t = 0; t < count; ++t) rows.insert(rows.end(), row.begin(), row.end());
  return ops.upload(rows, count, row.size());
}

}  // namespace

OwnLayers::OwnLayers(const Weights& weights, const NormRule& final_norm)
    : h_(hyperparameters(weights.tree())),
      layers_(weights.tree().layers),
      context_(h_.context),
      embedding_(weights.get({.role = Role::token_embedding})),
      head_(weights.get({.role = Role::output_head})),
      head_bias_(weights.find({.role = Role::output_head, .bias = true})),
      final_norm_(weights.get({.role = Role::final_norm}),
                  weights.find({.role = Role::final_norm, .bias = true}), final_norm) {
  for (const RopeRule& rule : h_.ropes) context_ = std::max(context_, stretched_context(rule));
}

std::vector<CacheWidth> OwnLayers::cache_widths() const {
  std::vector<CacheWidth> widths;
  for (std::size_t i = 0; i < layers_; ++i) widths.push_back(cache_width(i));
  return widths;
}

bool OwnLayers::cache_serves(std::size_t length, std::size_t other) const {
  return std::all_of(h_.ropes.begin(), h_.ropes.end(),
                     [&](const RopeRule& rule) { return same_frequencies(rule, length, other); });
}

Matrix OwnLayers::entered(const Matrix& embedding, Ops&) const {
  return embedding;
}
Matrix OwnLayers::passed_on(std::size_t, const Matrix& x, Ops&) const {
  return x;
}

Matrix OwnLayers::hidden(const Batch& batch, Ops& ops, const Taps& taps) const {
  const Matrix embedding = entered(ops.embed(batch.tokens, embedding_), ops);  // [tokens, hidden]
  taps("embed", embedding);
  std::vector<RopeAngles> angles;
  for (const RopeRule& rule : h_.ropes) angles.push_back(rope_angles(rule, batch, ops));
  const OwnStep step = {batch, angles, embedding, ops};
  Matrix x = embedding;
  std::vector<Matrix> beside;
  for (std::size_t i = 0; i < layers_; ++i) {
    const TapScope at(taps, "layers", i);
    batch.go_on();
    x = layer(i, x, step, at, beside);
    at("out", x);
    x = passed_on(i, x, ops);
  }
  x = final_norm_(x, ops);
  taps("final_norm", x);
  return x;
}

Matrix OwnLayers::logits(const Matrix& hidden, Ops& ops, const Taps& taps) const {
  Matrix y = ops.linear(hidden, head_, head_bias_);  // [rows, vocabulary]
  if (h_.final_cap != 0) y = ops.soft_cap(y, h_.final_cap);
  taps("logits", y);
  return y;
}

WeightView named_weight(const Weights& weights, const std::string& name) {
  const WeightView view = weights.find_named(name);
  if (!view) throw Error::input("is missing").tensor(name);
  return view;
}

Matrix attend_to_cache(AttentionCall call, const Matrix& k, const Matrix& v, std::size_t layer,
                       const Batch& batch, Ops& ops) {
  for (const Batch::Sequence& s : batch.sequences) {
    const std::size_t keys = s.cache->rows(layer) + s.count;
    s.cache->put(layer, k.row_range(s.first, s.count), v.row_range(s.first, s.count));
    call.sequences.push_back({s.first, s.count, keys, s.cache->keys(layer), s.cache->values(layer)});
  }
  return ops.attention(call);  // [tokens, heads · v_dim]
}

CacheWidth cache_of_heads(std::size_t heads, std::size_t qk_dim, std::size_t v_dim, std::size_t window) {
  return {heads * qk_dim, heads * v_dim, {}, window, heads};
}

Matrix times_vector(const Matrix& x, const std::vector<double>& factors, Ops& ops) {
  return ops.scale(x, rows_of(factors, x.rows(), ops));
}
Matrix plus_vector(const Matrix& x, const std::vector<double>& more, Ops& ops) {
  return ops.add(x, rows_of(more, x.rows(), ops));
}

}  // namespace assay
