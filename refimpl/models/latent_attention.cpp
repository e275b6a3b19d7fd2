#include "refimpl/models/latent_attention.h"

#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "refimpl/ops/mla_matrices.h"

namespace assay {
namespace {

// The rows that a query sees through a window, of a sequence of so many `keys`.
std::vector<std::int32_t> rows_in_window(const PagedKvView& rows, const Batch::Sequence& sequence,
                                         std::size_t keys, std::size_t token, std::size_t window) {
  const std::size_t end = keys - sequence.count + (token - sequence.first) + 1, seen = std::min(end, window);
  return row_table(rows, end - seen, seen);
}

bool rotates(const RopeAngles& angles, const LatentSettings& s) {
  return !angles.cos.empty() && s.rope_dim != 0;
}

// For every query the cache's rows it attends to, as pages of one row; where it may see few enough, all of them.
// `picked` holds the pages, as long as the call is.
void add_sequences(MlaCall& call, const Batch& batch, std::size_t layer, const LatentSettings& s,
                   const KeyChoice& chosen, std::vector<std::vector<std::int32_t>>& picked) {
  picked.resize(batch.tokens.size());
  for (const Batch::Sequence& sequence : batch.sequences) {
    const PagedKvView rows = sequence.cache->keys(layer);
    const std::size_t keys = sequence.cache->rows(layer) + sequence.count;
    if ((s.top_k == 0 || keys <= s.top_k) && (s.window == 0 || keys <= s.window)) {
      call.sequences.push_back({.first = sequence.first,
                                .queries = sequence.count,
                                .keys = keys,
                                .key_rows = rows,
                                .value_rows = {}});
      continue;
    }
    for (std::size_t t = sequence.first; t < sequence.first + sequence.count; ++t) {
      std::vector<std::int32_t>& attended = picked[t];
      if (s.window != 0) {
        attended = rows_in_window(rows, sequence, keys, t, s.window);
      } else {
        attended = chosen.keys.at(t);
        for (std::int32_t& key : attended)
          key = static_cast<std::int32_t>(rows.row(static_cast<std::size_t>(key)));
      }
      call.sequences.push_back({.first = t,
                                .queries = 1,
                                .keys = attended.size(),
                                .key_rows = {.base = rows.base, .pages = attended.data(), .page_rows = 1},
                                .value_rows = {}});
    }
  }
}

}  // namespace

LatentSettings latent_settings(const AttentionGeometry& g) {
  LatentSettings s;
  s.heads = g.heads;
  s.kv_rank = g.kv_lora_rank;
  s.rope_dim = g.rope_head_dim;
  s.nope_dim = g.qk_head_dim - g.rope_head_dim;
  s.v_dim = g.v_head_dim;
  s.scale = 1 / std::sqrt(static_cast<double>(s.nope_dim + s.rope_dim));
  s.window = g.window;
  s.index_heads = g.indexer_heads;
  s.index_dim = g.indexer_head_dim;
  s.top_k = g.indexer_top_k;
  return s;
}

LatentSettings latent_settings(const ModuleTree& tree) {
  // Layers that rotate nothing have the whole width beside.
  const auto rotates = [](const AttentionGeometry& each) { return each.rope_head_dim != 0; };
  const auto found = std::find_if(tree.attention.begin(), tree.attention.end(), rotates);
  LatentSettings s = latent_settings(found == tree.attention.end() ? tree.attention.at(0) : *found);
  for (const AttentionGeometry& each : tree.attention) {
    s.top_k = each.indexer_top_k;
    if (each.indexer_heads == 0) continue;  // of layers that take another's choice
    s.index_heads = each.indexer_heads;
    s.index_dim = each.indexer_head_dim;
  }
  return s;
}

std::optional<KeyIndexer> KeyIndexer::find(const Weights& weights, std::size_t layer) {
  const auto get = [&](Role role, bool bias = false) {
    return weights.get({.role = role, .layer = layer, .bias = bias});
  };
  if (!weights.find({.role = Role::indexer_q, .layer = layer})) return std::nullopt;
  // The second norm of the module, and what stands behind its weights of heads.
  const auto more = [&](Role role, int number, bool bias = false) {
    return weights.find({.role = role, .layer = layer, .bias = bias, .half = number});
  };
  return KeyIndexer{.q = get(Role::indexer_q),
                    .k = get(Role::indexer_k),
                    .k_norm = get(Role::indexer_k_norm),
                    .k_norm_bias = get(Role::indexer_k_norm, true),
                    .weights = get(Role::indexer_weights),
                    .pools = KeyPools::find(weights, layer),
                    .q_norm = more(Role::indexer_k_norm, 1),
                    .q_norm_bias = more(Role::indexer_k_norm, 1, true),
                    .score_scale = {more(Role::indexer_weights, 1), more(Role::indexer_weights, 2)}};
}

KeyChoice KeyIndexer::choose(const Matrix& x, const Matrix& q_latent, const Matrix& latents,
                             std::size_t layer, const Batch& batch, const RopeAngles& angles,
                             const LatentSettings& s, Ops& ops, const TapScope& at) const {
  const auto rotate = [&](const Matrix& of, std::size_t heads) {  // some elements of each head
    if (!rotates(angles, s)) return;
    ops.rope(of, {.heads = heads,
                  .head_dim = s.index_dim,
                  .offset = s.index_rope_last ? s.index_dim - 2 * angles.cos.columns() : 0,
                  .cos = angles.cos,
                  .sin = angles.sin,
                  .layout = s.index_layout});
  };
  const Matrix given = q_norm ? ops.layer_norm(x, q_norm, q_norm_bias, s.index_epsilon) : q_latent;
  Matrix queries = ops.linear(given, q);  // [tokens, index heads · index dim]
  if (score_scale) queries = score_scale(queries, batch, ops);
  rotate(queries, s.index_heads);
  at("index_q", queries);
  const Matrix keys = ops.layer_norm(ops.linear(x, k), k_norm, k_norm_bias, s.index_epsilon);
  rotate(keys, 1);
  at("index_k", keys);                                 // [tokens, index dim]
  const Matrix head_weights = ops.linear(x, weights);  // [tokens, index heads]
  at("index_weights", head_weights);

  IndexCall call{.q = queries,
                 .weights = head_weights,
                 .sequences = {},
                 .heads = s.index_heads,
                 .head_dim = s.index_dim,
                 .top_k = pools ? s.top_k / pools->tokens() : s.top_k,
                 .tokens_a_key = pools ? pools->tokens() : 1};
  const Matrix kept = pools ? pools->kept(x, keys, ops) : keys;  // [tokens, width]
  for (const Batch::Sequence& sequence : batch.sequences) {
    const Matrix own = kept.row_range(sequence.first, sequence.count);
    if (latents.empty())
      sequence.cache->put(layer, own);
    else
      sequence.cache->put(layer, latents.row_range(sequence.first, sequence.count), own);
    const std::size_t before = sequence.cache->length();
    const PagedKvView rows = latents.empty() ? sequence.cache->keys(layer) : sequence.cache->values(layer);
    call.sequences.push_back({sequence.first, sequence.count, before,
                              pools ? pools->pooled(rows, before + sequence.count, ops) : rows});
  }
  KeyChoice choice = ops.choose_keys(call);
  if (pools) choice = pools->tokens_of(choice, batch, most_keys(s), ops);
  at("index_keys", choice.positions);
  return choice;
}

LatentAttention LatentAttention::read(const Weights& weights, std::size_t layer) {
  const auto get = [&](Role role) { return weights.get({.role = role, .layer = layer}); };
  const auto bias = [&](Role role) { return weights.find({.role = role, .layer = layer, .bias = true}); };
  LatentAttention a;
  a.q = weights.find({.role = Role::q, .layer = layer});
  if (!a.q) {
    a.q_a = get(Role::q_a);
    a.q_a_bias = bias(Role::q_a);
    a.q_a_norm = get(Role::q_a_norm);
    a.q_b = get(Role::q_b);
  }
  a.kv_a = weights.find({.role = Role::kv_a, .layer = layer});  // the tree says which layers have none
  a.kv_a_bias = bias(Role::kv_a);
  if (a.kv_a) a.kv_a_norm = get(Role::kv_a_norm);
  a.k_rope_norm = weights.find({.role = Role::k_norm, .layer = layer});
  const auto scale = [&](int number) {
    return weights.find({.role = Role::layer_scale, .part = Part::attention, .layer = layer, .half = number});
  };
  a.score_scale = {scale(0), scale(1)};
  a.k_b = weights.find({.role = Role::kv_b, .layer = layer, .half = 1});
  a.v_b = weights.find({.role = Role::kv_b, .layer = layer, .half = 2});
  if (!a.k_b || !a.v_b) a.kv_b = get(Role::kv_b);
  a.output = get(Role::attention_output);
  a.output_bias = bias(Role::attention_output);
  a.gate = weights.find({.role = Role::attention_gate, .layer = layer});
  a.sinks = weights.find({.role = Role::sinks, .layer = layer});
  a.indexer = KeyIndexer::find(weights, layer);
  return a;
}

LatentAttention::Queries LatentAttention::queries(const Matrix& x, const Batch& batch,
                                                  const RopeAngles& angles, const LatentSettings& s,
                                                  Ops& ops) const {
  Queries made;
  if (q) {
    made.heads = ops.linear(x, q);
  } else {
    const Matrix given = ops.linear(x, q_a, q_a_bias);
    made.latent = ops.rms_norm(given, q_a_norm, s.epsilon, NormForm::weight_last);
    if (s.q_latent_factor != 1) made.latent = ops.multiply(made.latent, s.q_latent_factor);
    const bool gated = q_b.inputs() == 2 * q_a.outputs();
    made.heads = ops.linear(gated ? ops.concatenate(made.latent, given) : made.latent, q_b);
    if (gated) {
      const std::size_t width = s.nope_dim + s.rope_dim, both = width + s.v_dim;
      made.gate = ops.of_each(made.heads, both, width, s.v_dim);
      made.heads = ops.of_each(made.heads, both, 0, width);
    }
  }
  if (s.q_factor != 1) made.heads = ops.multiply(made.heads, s.q_factor);
  if (rotates(angles, s))
    ops.rope(made.heads, {.heads = s.heads,
                          .head_dim = s.nope_dim + s.rope_dim,
                          .offset = s.nope_dim,
                          .cos = angles.cos,
                          .sin = angles.sin,
                          .layout = s.layout});
  if (s.temperature) made.heads = ops.scale(made.heads, temperatures(*s.temperature, batch, ops));
  if (score_scale) made.heads = score_scale(made.heads, batch, ops);
  return made;
}

// What a token keeps: [tokens, kv_rank + rope]
Matrix LatentAttention::latents(const Matrix& x, const RopeAngles& angles, const LatentSettings& s, Ops& ops,
                                const TapScope& at) const {
  const Matrix down = ops.linear(x, kv_a, kv_a_bias);  // [tokens, kv_rank + rope]
  Matrix latent = ops.rms_norm(down.part(0, s.kv_rank), kv_a_norm, s.epsilon, NormForm::weight_last);
  at("latent", latent);  // [tokens, kv_rank]
  if (s.latent_factor != 1) latent = ops.multiply(latent, s.latent_factor);
  if (s.rope_dim == 0) return latent;
  Matrix key_part = down.part(s.kv_rank, s.rope_dim);  // [tokens, rope]
  if (k_rope_norm) key_part = ops.rms_norm(key_part, k_rope_norm, s.epsilon, NormForm::weight_last);
  if (rotates(angles, s))
    ops.rope(key_part,
             {.heads = 1, .head_dim = s.rope_dim, .cos = angles.cos, .sin = angles.sin, .layout = s.layout});
  at("k_rope", key_part);
  return ops.concatenate(latent, key_part);
}

Matrix LatentAttention::forward(const Matrix& x, std::size_t layer, const Batch& batch,
                                const RopeAngles& angles, const LatentSettings& s, KeyChoice& chosen,
                                Ops& ops, const TapScope& at) const {
  const Queries q_of = queries(x, batch, angles, s, ops);
  at("q", q_of.heads);
  Matrix kept;
  if (keeps_latents()) kept = latents(x, angles, s, ops, at);
  if (indexer) {
    chosen = indexer->choose(x, q_of.latent, kept, layer, batch, angles, s, ops, at);
  } else if (keeps_latents()) {
    for (const Batch::Sequence& sequence : batch.sequences)
      sequence.cache->put(layer, kept.row_range(sequence.first, sequence.count));
  }
  MlaCall call{.q = q_of.heads,
               .sequences = {},
               .kv_b = kv_b,
               .k_b = k_b,
               .v_b = v_b,
               .heads = s.heads,
               .kv_rank = s.kv_rank,
               .nope_dim = s.nope_dim,
               .rope_dim = s.rope_dim,
               .v_dim = s.v_dim,
               .scale = s.scale,
               .form = s.form};
  std::vector<std::vector<std::int32_t>> picked;
  add_sequences(call, batch, keeps_latents() ? layer : reads_layer, s, chosen, picked);
  Matrix mixed = sinks ? mla_by_attention(ops, call, sinks) : ops.mla(call);  // [tokens, heads · v]
  at("attn_context", mixed);
  if (gate) at("attn_gated", mixed = ops.output_gate(mixed, ops.linear(x, gate)));
  if (!q_of.gate.empty()) at("attn_gated", mixed = ops.output_gate(mixed, q_of.gate));
  return ops.linear(mixed, output, output_bias);  // [tokens, hidden]
}

}  // namespace assay
