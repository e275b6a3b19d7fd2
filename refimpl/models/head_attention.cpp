#include "refimpl/models/head_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/error.h"

namespace assay {
namespace {

// ALiBi (arXiv 2108.12409): of 2ⁿ heads the powers of 2^(-exponent / 2ⁿ); of others these, then every second one
// of twice as many.
std::vector<double> alibi_slopes(std::size_t heads, double exponent) {
  std::size_t whole = 1;
  while (2 * whole <= heads) whole *= 2;
  std::vector<double> slopes;
  for (std::size_t i = 1; i <= whole; ++i)
    slopes.push_back(std::exp2(-exponent * static_cast<double>(i) / static_cast<double>(whole)));
  for (std::size_t i = 1; slopes.size() < heads; i += 2)
    slopes.push_back(std::exp2(-exponent * static_cast<double>(i) / static_cast<double>(2 * whole)));
  return slopes;
}

// The rows from `first` on.
PagedKvView after(PagedKvView rows, std::size_t first, std::size_t count) {
  if (first == 0) return rows;
  if (rows.pages == nullptr) {
    rows.base = rows.base.row_range(first, count);
    return rows;
  }
  if (first % rows.page_rows != 0)
    throw Error::internal(fmt::format("a chunk begins within a page of {} rows", rows.page_rows));
  rows.pages += first / rows.page_rows;
  return rows;
}

std::vector<WeightView> norms_of_heads(const Weights& weights, std::size_t layer, std::string_view name,
                                       char of, std::size_t heads) {
  std::vector<WeightView> views;
  for (std::size_t i = 0; i < heads; ++i) {
    const WeightView view = weights.find_named(fmt::format(fmt::runtime(name), layer, of, i));
    if (view) views.push_back(view);
  }
  return views;
}

}  // namespace

HeadAttention::HeadAttention(const Weights& weights, std::size_t layer, const AttentionGeometry& geometry,
                             const AttentionForm& form, const NormRule& norm)
    : layer_(layer),
      geometry_(geometry),
      form_(form),
      h_(hyperparameters(weights.tree())),
      scale_(h_.attention_scale != 0 ? h_.attention_scale
                                     : 1 / std::sqrt(static_cast<double>(geometry.qk_head_dim))),
      qkv_(find_projection(weights, Role::qkv, layer)),
      o_(get_projection(weights, Role::attention_output, layer)),
      gate_(find_projection(weights, Role::attention_gate, layer)),
      sinks_(weights.find({.role = Role::sinks, .layer = layer})) {
  if (!qkv_) {
    q_ = get_projection(weights, Role::q, layer);
    k_ = get_projection(weights, Role::k, layer);
    v_ = get_projection(weights, Role::v, layer);
  }
  if (form.norm_of_head.empty()) {
    const Projection q = find_projection(weights, Role::q_norm, layer),
                     k = find_projection(weights, Role::k_norm, layer);
    q_norm_ = Norm(q.weight, q.bias, norm);
    k_norm_ = Norm(k.weight, k.bias, norm);
  } else {
    q_norm_ = Norm(norms_of_heads(weights, layer, form.norm_of_head, 'q', geometry.heads), norm);
    k_norm_ = Norm(norms_of_heads(weights, layer, form.norm_of_head, 'k', geometry.kv_heads), norm);
  }
  if (h_.unit_heads && h_.rope_of.at(layer)) unit_ = Norm::unweighted(geometry.qk_head_dim, norm);
  if (h_.alibi_exponent != 0) slopes_ = alibi_slopes(geometry.heads, h_.alibi_exponent);
}

CacheWidth HeadAttention::cache_width() const {
  return {geometry_.kv_heads * geometry_.qk_head_dim, geometry_.kv_heads * geometry_.v_head_dim};
}

Matrix HeadAttention::forward(const Matrix& x, const Batch& batch, const RopeAngles* angles, Ops& ops,
                              const TapScope& at) const {
  Qkv of = project(x, ops);
  const Matrix gate = cut_gate(of.q, ops);  // as wide as the heads, or none
  if (!gate.empty()) at("attn_gate", gate);
  at("q_proj", of.q);
  at("k_proj", of.k);
  if (!form_.norm_after_rope) of.q = q_norm_(of.q, ops), of.k = k_norm_(of.k, ops);
  if (form_.clipped_after_norm) clip(of, ops);
  if (angles != nullptr) {
    rotate(of.q, geometry_.heads, *angles, ops);
    rotate(of.k, geometry_.kv_heads, *angles, ops);
  }
  if (form_.norm_after_rope) of.q = q_norm_(of.q, ops), of.k = k_norm_(of.k, ops);
  of.q = unit_(of.q, ops);
  of.k = unit_(of.k, ops);
  of.q = warmed(of.q, batch, ops);
  at("q", of.q);
  at("k", of.k);
  at("v", of.v);
  Matrix context = attend(of, batch, ops);  // [tokens, heads · v_dim]
  at("attn_context", context);
  if (!gate.empty()) at("attn_gated", context = ops.output_gate(context, gate));
  if (gate_) at("attn_gated", context = ops.output_gate(context, gate_(x, ops)));
  return o_(context, ops);  // [tokens, hidden]
}

HeadAttention::Qkv HeadAttention::project(const Matrix& x, Ops& ops) const {
  Qkv of;
  if (!qkv_) {
    of = {q_(x, ops), k_(x, ops), v_(x, ops)};
  } else {
    const Matrix fused = qkv_(x, ops);
    const AttentionGeometry& g = geometry_;
    const std::size_t q = g.heads * g.qk_head_dim, k = g.kv_heads * g.qk_head_dim;
    of = {fused.part(0, q), fused.part(q, k), fused.part(q + k, g.kv_heads * g.v_head_dim)};
    if (form_.fused_by_key_head && g.kv_heads > 1) cut_by_key_head(fused, of, ops);
  }
  if (!form_.clipped_after_norm) clip(of, ops);
  if (h_.value_scale != 1) of.v = ops.multiply(of.v, h_.value_scale);
  if (form_.key_scale != 1) of.k = ops.multiply(of.k, form_.key_scale);
  return of;
}

void HeadAttention::clip(Qkv& of, Ops& ops) const {
  if (h_.clip_qkv == 0) return;
  for (Matrix* m : {&of.q, &of.k, &of.v}) *m = ops.clamp(*m, h_.clip_qkv);
}

void HeadAttention::cut_by_key_head(const Matrix& fused, Qkv& to, Ops& ops) const {
  const std::size_t d = geometry_.qk_head_dim, v = geometry_.v_head_dim,
                    queries = geometry_.heads / geometry_.kv_heads * d, all = queries + d + v;
  to = {ops.of_each(fused, all, 0, queries), ops.of_each(fused, all, queries, d),
        ops.of_each(fused, all, queries + d, v)};
}

// Where q is twice as wide as the heads, each head's second half is a gate of what attention gives.
Matrix HeadAttention::cut_gate(Matrix& q, Ops& ops) const {
  const std::size_t d = geometry_.qk_head_dim;
  if (q.columns() != 2 * geometry_.heads * d) return {};
  const Matrix gate = ops.of_each(q, 2 * d, d, d);
  q = ops.of_each(q, 2 * d, 0, d);
  return gate;
}

void HeadAttention::rotate(Matrix& x, std::size_t heads, const RopeAngles& angles, Ops& ops) const {
  ops.rope(x, {.heads = heads,
               .head_dim = geometry_.qk_head_dim,
               .cos = angles.cos,
               .sin = angles.sin,
               .layout = h_.interleaved_pairs ? RopeLayout::interleaved : RopeLayout::half_split});
}

// Queries far from the beginning of a text are made longer.
Matrix HeadAttention::warmed(const Matrix& q, const Batch& batch, Ops& ops) const {
  if (!h_.temperature) return q;
  const Hyperparameters::Temperature& t = *h_.temperature;
  if (!t.layers.empty() && !t.layers.at(layer_)) return q;
  std::vector<double> factors;
  for (const auto position : batch.positions)
    factors.push_back(1 +
                      t.scale * std::log1p(std::floor((static_cast<double>(position) + t.offset) / t.floor)));
  return ops.scale(q, ops.upload(factors, factors.size(), 1));
}

// What the sequence's queries see: all before them, or only their chunk.
void HeadAttention::add_spans(const Batch::Sequence& s, AttentionCall& call) const {
  const PagedKvView keys = s.cache->keys(layer_), values = s.cache->values(layer_);
  const std::size_t begin = s.cache->length(), end = begin + s.count;
  if (!geometry_.chunked) {
    call.sequences.push_back({s.first, s.count, end, keys, values});
    return;
  }
  for (std::size_t position = begin; position < end;) {
    const std::size_t chunk = position / geometry_.window * geometry_.window,
                      stop = std::min(end, chunk + geometry_.window);
    call.sequences.push_back({s.first + position - begin, stop - position, stop - chunk,
                              after(keys, chunk, stop - chunk), after(values, chunk, stop - chunk)});
    position = stop;
  }
}

Matrix HeadAttention::attend(const Qkv& of, const Batch& batch, Ops& ops) const {
  AttentionCall call = {.q = of.q,
                        .sequences = {},
                        .heads = geometry_.heads,
                        .kv_heads = geometry_.kv_heads,
                        .qk_dim = geometry_.qk_head_dim,
                        .v_dim = geometry_.v_head_dim,
                        .scale = scale_,
                        .window = geometry_.chunked ? 0 : geometry_.window,
                        .soft_cap = h_.attention_cap,
                        .sinks = sinks_,
                        .slopes = slopes_};
  for (const Batch::Sequence& s : batch.sequences) {
    s.cache->put(layer_, of.k.row_range(s.first, s.count), of.v.row_range(s.first, s.count));
    add_spans(s, call);
  }
  return ops.attention(call);
}

}  // namespace assay
