#include "refimpl/models/head_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/system/error.h"
#include "refimpl/models/watched_attention.h"
#include "refimpl/ops/apart.h"
#include "refimpl/ops/index_calls.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

// Of all heads of the model, of which a rank has its own: slopes and norms go by a head's number.
const AttentionGeometry& whole_geometry(const Weights& weights, std::size_t layer) {
  for (const auto* geometries : {&weights.whole_tree().attention, &weights.whole_tree().mtp_attention})
    for (const AttentionGeometry& g : *geometries)
      if (std::find(g.layers.begin(), g.layers.end(), layer) != g.layers.end()) return g;
  throw Error::internal("a layer without attention is asked for its heads");
}

// The rows that `table` names, one by one.
PagedKvView picked_rows(const PagedKvView& rows, const std::vector<std::int32_t>& table) {
  return {.base = rows.base, .pages = table.data(), .page_rows = 1};
}

Matrix softplus_of(const Matrix& x, Ops& ops) {
  std::vector<double> values = ops.download(x);
  for (double& value : values) value = softplus(value);
  return ops.upload(values, x.rows(), x.columns());
}

// The last layer before this one that looks as far and keeps what it sees.
std::size_t cache_of(const ModuleTree& tree, std::size_t layer, const AttentionGeometry& geometry) {
  if (geometry.cached) return layer;
  std::optional<std::size_t> found;
  for (const AttentionGeometry& other : tree.attention) {
    if (!other.cached || other.window != geometry.window) continue;
    for (const std::uint64_t each : other.layers) {
      if (each < layer && (!found || each > *found)) found = each;
    }
  }
  if (!found)
    throw Error::input(fmt::format("layer {} has no layer before it whose cache it can read", layer));
  return *found;
}

// `heads`: of the whole model; other ranks' have no view.
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
      cache_(cache_of(weights.tree(), layer, geometry)),
      geometry_(geometry),
      form_(form),
      h_(hyperparameters(weights.tree())),
      scale_(form.relative             ? 1 / static_cast<double>(geometry.qk_head_dim)
             : h_.attention_scale != 0 ? h_.attention_scale
                                       : 1 / std::sqrt(static_cast<double>(geometry.qk_head_dim))),
      qkv_(find_projection(weights, Role::qkv, layer)),
      o_(get_projection(weights, Role::attention_output, layer)),
      gate_(form.differential || form.relative ? Projection()
                                               : find_projection(weights, Role::attention_gate, layer)),
      sinks_(weights.find({.role = Role::sinks, .layer = layer})) {
  if (!qkv_) {
    q_ = get_projection(weights, Role::q, layer);
    if (geometry.cached) k_ = get_projection(weights, Role::k, layer);
    value_experts_ = ValueExperts::find(weights, layer, form.value_rule);
    if (!value_experts_) v_ = find_projection(weights, Role::v, layer);
  } else {
    q_ = find_projection(weights, Role::q, layer);  // TeleChat 2: beside keys and values in one matrix
  }
  if (form.norm_of_head.empty()) {
    const Projection q = find_projection(weights, Role::q_norm, layer),
                     k = find_projection(weights, Role::k_norm, layer);
    q_norm_ = form.norms_in_row ? Norm::of_row(q.weight, geometry.heads, norm) : Norm(q.weight, q.bias, norm);
    k_norm_ =
        form.norms_in_row ? Norm::of_row(k.weight, geometry.kv_heads, norm) : Norm(k.weight, k.bias, norm);
  } else {
    const AttentionGeometry& whole = whole_geometry(weights, layer);
    q_norm_ = Norm(norms_of_heads(weights, layer, form.norm_of_head, 'q', whole.heads), norm);
    k_norm_ = Norm(norms_of_heads(weights, layer, form.norm_of_head, 'k', whole.kv_heads), norm);
  }
  if (h_.unit_heads && h_.rope_of.at(layer)) unit_ = Norm::unweighted(geometry.qk_head_dim, norm);
  if (form.unit_queries) early_unit_ = Norm::unweighted(geometry.qk_head_dim, norm);
  if (form.unit_context) context_unit_ = Norm::unweighted(geometry.v_head_dim, norm);
  if (geometry.indexer_heads != 0)
    index_ = BlockIndex::find(weights, layer, whole_geometry(weights, layer), form.index, norm);
  if (form.gated_passes) std::swap(gate_, pass_gate_);
  if (form.relative) relative_.emplace(weights, layer, geometry, *form.relative);
  if (form.differential)
    differential_.emplace(weights, layer, geometry.v_head_dim, norm.epsilon, *form.differential);
  context_norm_ = Norm(
      weights.find({.role = Role::post_attention_norm, .part = Part::attention, .layer = layer}), {}, norm);
  if (form.unit_values) v_norm_ = Norm::unweighted(geometry.v_head_dim, norm);
  if (h_.alibi_exponent != 0) slopes_ = alibi_slopes(whole_geometry(weights, layer).heads, h_.alibi_exponent);
}

CacheWidth HeadAttention::cache_width() const {
  if (!geometry_.cached) return {};
  const std::size_t index = index_ ? index_->head_dim : 0;  // whose keys lie behind the values
  return {geometry_.kv_heads * geometry_.qk_head_dim, geometry_.kv_heads * geometry_.v_head_dim + index,
          relative_ ? relative_->states() : std::vector<StateShape>(), index_ ? 0 : geometry_.window,
          index_ || relative_ || is_biased() ? 0 : geometry_.kv_heads};
}

Matrix HeadAttention::forward(const Matrix& x, const Batch& batch, const RopeAngles* angles, Ops& ops,
                              const TapScope& at) const {
  Qkv of = project(x, ops, at);
  const Matrix gate = cut_gate(of.q, ops);  // as wide as the heads, or none
  if (!gate.empty()) at("attn_gate", gate);
  const bool own = geometry_.cached;  // else there are queries only
  at("q_proj", of.q);
  if (own) at("k_proj", of.k);
  if (relative_) convolve(of, x, batch, ops);
  if (!form_.norm_after_rope) of.q = q_norm_(of.q, ops), of.k = k_norm_(of.k, ops);
  make_units(of, ops);
  if (form_.clipped_after_norm) clip(of, ops);
  if (own && batch.renumbered()) of.unplaced = ops.multiply(of.k, 1);
  of.q = placed(of.q, geometry_.heads, q_norm_, angles, ops);
  if (own) of.k = placed(of.k, geometry_.kv_heads, k_norm_, angles, ops), of.v = v_norm_(of.v, ops);
  of.q = relative_ ? relative_->warmed(of.q, batch, ops) : warmed(of.q, batch, ops);
  at("q", of.q);
  if (own) at("k", of.k), at("v", of.v);
  if (index_ && angles != nullptr)
    of.index_q = index_->queries_of(x, *angles, ops, at), of.index_k = index_->keys_of(x, *angles, ops, at);
  Matrix context = attend(of, batch, angles, ops, at);  // [tokens, heads · v_dim]
  if (form_.first_pass) context = joined_with_first_pass(of.q, context, batch, ops);
  at("attn_context", context);
  if (context_unit_) at("context_norm", context = context_unit_(context, ops));
  if (!gate.empty()) at("attn_gated", context = ops.output_gate(context, gate));
  if (gate_) at("attn_gated", context = gated(context, gate_(x, ops), ops));
  if (context_norm_) at("context_norm", context = context_norm_(context, ops));
  return o_(context, ops);  // [tokens, hidden]
}

// As no kernel is.
bool HeadAttention::is_biased() const {
  return form_.slopes != SlopeForm::linear || (form_.blocks && form_.blocks->of_layer(layer_));
}

void HeadAttention::require_whole_cache(const Batch& batch) const {
  for (const Batch::Sequence& s : batch.sequences) {
    if (s.cache->renumbers() || s.cache->rows(layer_) != batch.positions[s.first])
      throw Error::input(fmt::format(
          "layer {} scores by distances: rows of its cache cannot be renumbered or thrown away", layer_));
  }
}

void HeadAttention::convolve(Qkv& of, const Matrix& x, const Batch& batch, Ops& ops) const {
  require_whole_cache(batch);
  of.k = relative_->keys(of.k, batch, ops);
  of.v = relative_->values(of.v, batch, ops);
  of.relative = relative_->relative(x, ops);
}

void HeadAttention::make_units(Qkv& of, Ops& ops) const {
  if (!early_unit_) return;
  of.q = ops.multiply(early_unit_(of.q, ops), *form_.unit_queries);
  of.k = early_unit_(of.k, ops);
}

Matrix HeadAttention::gated(const Matrix& context, const Matrix& gate, Ops& ops) const {
  switch (form_.gate) {
    case HeadGate::sigmoid: return ops.output_gate(context, gate);
    case HeadGate::silu: return ops.output_gate(context, gate, GateForm::silu);
    case HeadGate::softplus: return ops.output_gate(context, softplus_of(gate, ops), GateForm::identity);
    case HeadGate::softplus_of_2: break;
  }
  std::vector<double> factors = ops.download(gate);
  for (double& x : factors) {
    const double natural = x * std::numbers::ln2;
    if (natural <= 20) x = std::log1p(std::exp(natural)) / std::numbers::ln2;  // as torch: else x itself
  }
  return ops.scale(context, ops.upload(factors, gate.rows(), gate.columns()));
}

HeadAttention::Qkv HeadAttention::project(const Matrix& x, Ops& ops, const TapScope& at) const {
  Qkv of;
  if (!geometry_.cached) {
    of.q = q_(x, ops);
    return of;
  }
  if (!qkv_) {
    std::vector<LinearCall> calls = {q_.of(x), k_.of(x)};
    if (v_ && !value_experts_) calls.push_back(v_.of(x));
    std::vector<Matrix> made = ops.run_together(calls);
    of.q = made[0], of.k = made[1];
    if (value_experts_)
      of.v = (*value_experts_)(x, ops, at);
    else
      of.v = v_ ? made[2] : of.k;  // Gemma 4: of layers that see all
  } else if (q_) {
    const std::size_t d = geometry_.qk_head_dim, v = geometry_.v_head_dim;
    const Matrix fused =
        qkv_(x, ops);  // [tokens, kv_heads · (d + v)], of each key head its key, then its value
    of = {q_(x, ops), ops.of_each(fused, d + v, 0, d), ops.of_each(fused, d + v, d, v)};
  } else {
    const Matrix fused = qkv_(x, ops);
    const AttentionGeometry& g = geometry_;
    const std::size_t q = g.heads * g.qk_head_dim, k = g.kv_heads * g.qk_head_dim;
    of = {fused.part(0, q), fused.part(q, k), fused.part(q + k, g.kv_heads * g.v_head_dim)};
    if (form_.fused_by_key_head && g.kv_heads > 1) cut_by_key_head(fused, of, ops);
    if (form_.fused_groups > 1) cut_by_group(fused, of, ops);
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

// CodeGen: q, v, k.
void HeadAttention::cut_by_group(const Matrix& fused, Qkv& to, Ops& ops) const {
  const std::size_t width = geometry_.heads * geometry_.qk_head_dim / form_.fused_groups, all = 3 * width;
  to = {ops.of_each(fused, all, 0, width), ops.of_each(fused, all, 2 * width, width),
        ops.of_each(fused, all, width, width)};
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

Matrix HeadAttention::placed(Matrix x, std::size_t heads, const Norm& norm, const RopeAngles* angles,
                             Ops& ops) const {
  if (angles != nullptr) rotate(x, heads, *angles, ops);
  if (form_.norm_after_rope) x = norm(x, ops);
  return unit_(x, ops);
}

// Queries far from the beginning of a text are made longer.
Matrix HeadAttention::warmed(const Matrix& q, const Batch& batch, Ops& ops) const {
  if (!h_.temperature) return q;
  const Hyperparameters::Temperature& t = *h_.temperature;
  if (!t.layers.empty() && !t.layers.at(layer_)) return q;
  return ops.scale(q, temperatures(t, batch, ops));
}

// What the sequence's queries see: all before them, or only their chunk.
void HeadAttention::add_spans(const Batch::Sequence& s, const PagedKvView& keys, AttentionCall& call,
                              RowTables& tables) const {
  const PagedKvView values = values_of(*s.cache);
  const std::size_t begin = s.cache->rows(cache_), end = begin + s.count;
  if (!geometry_.chunked) {
    call.sequences.push_back({s.first, s.count, end, keys, values});
    return;
  }
  for (std::size_t position = begin; position < end;) {
    const std::size_t chunk = position / geometry_.window * geometry_.window,
                      stop = std::min(end, chunk + geometry_.window);
    const std::vector<std::int32_t>& table = tables.emplace_back(row_table(keys, chunk, stop - chunk));
    call.sequences.push_back({s.first + position - begin, stop - position, stop - chunk,
                              picked_rows(keys, table), picked_rows(values, table)});
    position = stop;
  }
}

// Where rows are renumbered, all keys are put where they lie now.
PagedKvView HeadAttention::keys_of(const Batch& batch, std::size_t sequence, const RopeAngles* angles,
                                   Ops& ops) const {
  const Batch::Sequence& s = batch.sequences[sequence];
  const PagedKvView keys = s.cache->keys(cache_);
  if (!s.cache->renumbers()) return keys;
  if (geometry_.chunked || !geometry_.cached)
    throw Error::input(
        fmt::format("layer {} {}: its rows cannot be renumbered", layer_,
                    geometry_.chunked ? "attends within chunks of the text" : "reads another layer's keys"));
  const Matrix rows = keys.base.row_range(0, s.cache->rows(layer_) + s.count);
  return {.base = placed(ops.multiply(rows, 1), geometry_.kv_heads, k_norm_,
                         angles == nullptr ? nullptr : &angles->of_rows.at(sequence), ops)};
}

PagedKvView HeadAttention::values_of(const SequenceCache& cache) const {
  PagedKvView values = cache.values(cache_);
  if (index_) values.base = values.base.part(0, geometry_.kv_heads * geometry_.v_head_dim);
  return values;
}

AttentionCall HeadAttention::call_of(const Matrix& q) const {
  return {.q = q,
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
}

Matrix HeadAttention::attend(const Qkv& of, const Batch& batch, const RopeAngles* angles, Ops& ops,
                             const TapScope& at) const {
  AttentionCall call = call_of(of.q);
  RowTables tables;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Batch::Sequence& s = batch.sequences[i];
    const Matrix kept = index_ ? ops.concatenate(of.v, of.index_k) : of.v;
    const Matrix& keys = s.cache->renumbers() ? of.unplaced : of.k;
    if (geometry_.cached)
      s.cache->put(layer_, keys.row_range(s.first, s.count), kept.row_range(s.first, s.count));
    add_spans(s, keys_of(batch, i, angles, ops), call, tables);
  }
  const bool picks = index_ && std::any_of(call.sequences.begin(), call.sequences.end(),
                                           [&](const auto& s) { return !index_->sees_all(s.keys - 1); });
  if (index_ && index_->form.pooled && (picks || at.listening())) {
    const auto places = pooled_places(of, batch, ops);
    if (at.listening()) at("index_keys", with_positions(ops, places, index_->most_places()).positions);
    if (picks) return attend_to_pooled(of, places, batch, ops);
  }
  if (picks) return attend_to_blocks(of, batch, ops);
  if (relative_) return (*relative_)(call, of.relative, ops);
  if (is_biased()) {
    require_whole_cache(batch);
    return attend_with_bias(call,
                            form_.slopes != SlopeForm::linear
                                ? slope_biases(form_.slopes, slopes_, scale_)
                                : pattern_biases(*form_.blocks, geometry_.heads),
                            ops);
  }
  const Matrix context = differential_ ? (*differential_)(call, ops) : ops.attention(call);
  if (geometry_.cached) tell_attention(call, batch, layer_, ops);
  return context;
}

Matrix HeadAttention::joined_with_first_pass(const Matrix& q, const Matrix& context, const Batch& batch,
                                             Ops& ops) const {
  AttentionCall call = call_of(q);
  call.window = 0;
  for (const Batch::Sequence& s : batch.sequences) {
    if (s.cache->renumbers())
      throw Error::input(fmt::format(
          "layer {} attends to the cache of its first pass, too: its rows cannot be renumbered", layer_));
    const std::size_t keys = s.cache->rows(*form_.first_pass) + s.count;
    call.sequences.push_back(
        {s.first, s.count, keys, s.cache->keys(*form_.first_pass), s.cache->values(*form_.first_pass)});
  }
  const Matrix all = ops.attention(call);
  const std::size_t width = geometry_.qk_head_dim, heads = geometry_.heads;
  const std::vector<double> queries = ops.download(q), bias = decode_vector(pass_gate_.bias);
  std::vector<double> first(q.rows() * heads), own(q.rows() * heads);
  for (std::size_t head = 0; head < heads; ++head) {
    const std::vector<double> w = decode_vector(pass_gate_.weight.row_range(head, 1));
    for (std::size_t t = 0; t < q.rows(); ++t) {
      const double logit = std::inner_product(
          w.begin(), w.end(), queries.begin() + static_cast<std::ptrdiff_t>((t * heads + head) * width),
          bias.at(head));
      first[t * heads + head] = logistic(logit);
      own[t * heads + head] = 1 - first[t * heads + head];
    }
  }
  return ops.add(ops.scale(all, ops.upload(first, q.rows(), heads)),
                 ops.scale(context, ops.upload(own, q.rows(), heads)));
}

std::vector<std::vector<std::int32_t>> HeadAttention::pooled_places(const Qkv& of, const Batch& batch,
                                                                    Ops& ops) const {
  const std::vector<double> queries = ops.download(of.index_q);
  const std::size_t width = of.index_q.columns();
  std::vector<std::vector<std::int32_t>> places(of.index_q.rows());
  for (const Batch::Sequence& s : batch.sequences) {
    const std::size_t begin = s.cache->length();
    const std::vector<std::int32_t> rows = row_table(s.cache->keys(cache_), 0, begin + s.count);
    const Matrix kept = ops.gather(
        s.cache->values(cache_).base.part(geometry_.kv_heads * geometry_.v_head_dim, index_->head_dim),
        std::vector<std::size_t>(rows.begin(), rows.end()));
    const std::vector<double> blocks = index_->keys_of_blocks(kept, h_.ropes.front(), ops);
    for (std::size_t i = 0; i < s.count; ++i)
      places[s.first + i] =
          index_->best_places(std::span(queries).subspan((s.first + i) * width, width), blocks, begin + i);
  }
  return places;
}

// One span for each query, of the places that all heads attend to.
Matrix HeadAttention::attend_to_pooled(const Qkv& of, const std::vector<std::vector<std::int32_t>>& places,
                                       const Batch& batch, Ops& ops) const {
  AttentionCall call = call_of(of.q);
  RowTables tables;
  for (const Batch::Sequence& s : batch.sequences) {
    const PagedKvView keys = s.cache->keys(cache_), values = values_of(*s.cache);
    const std::vector<std::int32_t> rows = row_table(keys, 0, s.cache->length() + s.count);
    for (std::size_t row = s.first; row < s.first + s.count; ++row) {
      std::vector<std::int32_t>& table = tables.emplace_back();
      for (const std::int32_t place : places[row]) table.push_back(rows[static_cast<std::size_t>(place)]);
      call.sequences.push_back({row, 1, table.size(), picked_rows(keys, table), picked_rows(values, table)});
    }
  }
  return ops.attention(call);
}

// One call for each head of the index.
Matrix HeadAttention::attend_to_blocks(const Qkv& of, const Batch& batch, Ops& ops) const {
  const auto* apart = dynamic_cast<const OpsApart*>(&ops);
  const std::size_t each = index_->key_heads, own = geometry_.kv_heads;
  const std::size_t before = apart == nullptr ? 0 : apart->first_key_head(each * index_->heads);
  const std::vector<double> queries = ops.download(of.index_q);
  Matrix all;
  for (std::size_t first = 0; first < own;) {
    const std::size_t head = (before + first) / each, end = std::min(own, (head + 1) * each - before);
    const Matrix context = attend_to_blocks(of, queries, batch, {head, first, end - first}, ops);
    all = first == 0 ? context : ops.concatenate(all, context);
    first = end;
  }
  return all;
}

// One span for each query: the rows of its blocks.
Matrix HeadAttention::attend_to_blocks(const Qkv& of, const std::vector<double>& index_queries,
                                       const Batch& batch, const IndexGroup& group, Ops& ops) const {
  const std::size_t queries_a_key = geometry_.heads / geometry_.kv_heads, d = geometry_.qk_head_dim,
                    v = geometry_.v_head_dim, width = index_->head_dim;
  AttentionCall call = call_of(of.q.part(group.first * queries_a_key * d, group.count * queries_a_key * d));
  call.heads = group.count * queries_a_key;
  call.kv_heads = group.count;
  RowTables tables;
  for (const Batch::Sequence& s : batch.sequences) {
    PagedKvView keys = s.cache->keys(cache_), values = values_of(*s.cache);
    const std::size_t begin = s.cache->length(), end = begin + s.count;
    const Matrix index_keys = s.cache->values(cache_).base.part(geometry_.kv_heads * v, width);
    const std::vector<std::int32_t> all_rows = row_table(keys, 0, end);
    const std::vector<std::size_t> places(all_rows.begin(), all_rows.end());
    const std::vector<double> known = ops.download(ops.gather(index_keys, places));
    keys.base = keys.base.part(group.first * d, group.count * d);
    values.base = values.base.part(group.first * v, group.count * v);
    for (std::size_t i = 0; i < s.count; ++i) {
      const std::size_t position = begin + i, row = s.first + i;
      if (index_->sees_all(position)) {
        call.sequences.push_back({row, 1, position + 1, keys, values});
        continue;
      }
      const auto query =
          index_queries.begin() + static_cast<std::ptrdiff_t>((row * index_->heads + group.head) * width);
      std::vector<double> scores(position + 1);
      for (std::size_t k = 0; k <= position; ++k)
        scores[k] =
            std::inner_product(known.begin() + static_cast<std::ptrdiff_t>(k * width),
                               known.begin() + static_cast<std::ptrdiff_t>((k + 1) * width), query, 0.0);
      std::vector<std::int32_t>& table = tables.emplace_back();
      for (const std::int32_t block : index_->best(scores, position)) {
        const std::size_t first = static_cast<std::size_t>(block) * index_->form.block;
        const auto end_of = all_rows.begin() +
                            static_cast<std::ptrdiff_t>(std::min(first + index_->form.block, position + 1));
        table.insert(table.end(), all_rows.begin() + static_cast<std::ptrdiff_t>(first), end_of);
      }
      call.sequences.push_back({row, 1, table.size(), picked_rows(keys, table), picked_rows(values, table)});
    }
  }
  return ops.attention(call);
}

}  // namespace assay
