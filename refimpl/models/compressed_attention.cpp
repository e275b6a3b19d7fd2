#include "refimpl/models/compressed_attention.h"

#include <fmt/format.h>

#include <cmath>

#include "core/system/error.h"
#include "refimpl/ops/pool_calls.h"

namespace assay {
namespace {

Compressor read_compressor(const Weights& weights, const std::string& path, std::size_t ratio) {
  const auto get = [&](const char* name) { return weights.find_named(path + name); };
  return {get("wkv.weight"), get("wgate.weight"), get("ape"), get("norm.weight"), ratio, ratio == 4};
}

// cos and sin of any positions, as of a sequence of `length` tokens.
RopeAngles angles_at(const RopeRule& rule, const std::vector<std::size_t>& positions, std::size_t length,
                     Ops& ops) {
  const RopeFrequencies frequencies = rope_frequencies(rule, length);
  const std::size_t pairs = rule.rotary_dim / 2;
  std::vector<double> cos, sin;
  for (const std::size_t position : positions) {
    for (std::size_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(position) * frequencies.inverse[i];
      cos.push_back(std::cos(angle) * frequencies.scale);
      sin.push_back(std::sin(angle) * frequencies.scale);
    }
  }
  return {ops.upload(cos, positions.size(), pairs), ops.upload(sin, positions.size(), pairs)};
}

// As transformers rotates in float32 and rounds once, where other classes round each product.
void rotate_rounding_once(const Matrix& x, std::size_t head_dim, const RopeAngles& angles, Ops& ops) {
  const std::size_t pairs = angles.cos.columns();
  std::vector<double> values = ops.download(x);
  const std::vector<double> cos = ops.download(angles.cos), sin = ops.download(angles.sin);
  for (std::size_t end = head_dim; end <= values.size(); end += head_dim) {
    const std::size_t token = (end - 1) / x.columns();
    for (std::size_t i = 0; i < pairs; ++i) {
      double &a = values[end - 2 * (pairs - i)], &b = values[end - 2 * (pairs - i) + 1];
      const double c = cos[token * pairs + i], s = sin[token * pairs + i], first = a;
      a = first * c - b * s;
      b = b * c + first * s;
    }
  }
  ops.store({.base = x}, 0, ops.upload(values, x.rows(), x.columns()));
}

// The last elements of each head, pairs side by side.
void rotate(const Matrix& x, std::size_t heads, const RopeAngles& angles, Ops& ops) {
  const std::size_t head_dim = x.columns() / heads;
  if (ops.arithmetic().bfloat16()) return rotate_rounding_once(x, head_dim, angles, ops);
  ops.rope(x, {.heads = heads,
               .head_dim = head_dim,
               .offset = head_dim - 2 * angles.cos.columns(),
               .cos = angles.cos,
               .sin = angles.sin,
               .layout = RopeLayout::interleaved});
}

Matrix rows_until(const PagedKvView& rows, std::size_t count, Ops& ops) {
  std::vector<std::size_t> places(count);
  for (std::size_t i = 0; i < count; ++i) places[i] = rows.row(i);
  return ops.gather(rows.base, places);
}

// The entries of all whole windows, from what the cache keeps of each token: [tokens / ratio, entry].
Matrix entries_of(const Compressor& c, const Matrix& kept, const CompressedSettings& s, Ops& ops) {
  const Matrix pooled = pool(ops, {.values = kept.part(0, c.width()),
                                   .gates = kept.part(c.width(), c.width()),
                                   .position = c.position,
                                   .ratio = c.ratio,
                                   .overlapping = c.overlapping});
  Matrix entries = ops.rms_norm(pooled, c.norm, s.epsilon, NormForm::weight_inside);
  std::vector<std::size_t> starts(entries.rows());
  for (std::size_t e = 0; e < starts.size(); ++e) starts[e] = e * c.ratio;
  rotate(entries, 1, angles_at(s.compressed_rope, starts, kept.rows(), ops), ops);
  return entries;
}

// Each head divided by its root mean square, without a weight; transformers rounds 1/rms first.
Matrix normed_heads(const Matrix& x, std::size_t head_dim, double epsilon, Ops& ops) {
  std::vector<double> values = ops.download(x);
  for (std::size_t first = 0; first < values.size(); first += head_dim) {
    const std::span head = std::span(values).subspan(first, head_dim);
    double sum = 0;
    for (const double value : head) sum += value * value;
    const double factor =
        ops.arithmetic().stage(1 / std::sqrt(sum / static_cast<double>(head_dim) + epsilon));
    for (double& value : head) value *= factor;
  }
  return ops.upload(values, x.rows(), x.columns());
}

// What the queries of one sequence attend to: its tokens' rows, then its entries.
struct Attended {
  Matrix rows;
  std::size_t tokens = 0;
};

// Every query to its window, and to the entries that were chosen or all there are.
Matrix attend(const Matrix& q, const CompressedAttention& a, const std::vector<Attended>& attended,
              const KeyChoice& chosen, const Batch& batch, const CompressedSettings& s, Ops& ops) {
  AttentionCall call{.q = q,
                     .sequences = {},
                     .heads = s.heads,
                     .kv_heads = 1,
                     .qk_dim = s.head_dim,
                     .v_dim = s.head_dim,
                     .scale = 1 / std::sqrt(static_cast<double>(s.head_dim)),
                     .sinks = a.sinks};
  std::vector<std::vector<std::int32_t>> pages;  // of every query: the rows it attends to
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Batch::Sequence& sequence = batch.sequences[i];
    for (std::size_t t = sequence.first; t < sequence.first + sequence.count; ++t) {
      const std::size_t position = batch.positions[t];
      std::vector<std::int32_t>& rows = pages.emplace_back();
      for (std::size_t k = position + 1 > s.window ? position + 1 - s.window : 0; k <= position; ++k)
        rows.push_back(static_cast<std::int32_t>(k));
      const auto add = [&](std::size_t entry) {
        rows.push_back(static_cast<std::int32_t>(attended[i].tokens + entry));
      };
      if (a.index_compressor) {
        for (const std::int32_t entry : chosen.keys[t]) add(static_cast<std::size_t>(entry));
      } else if (a.ratio != 0) {
        for (std::size_t entry = 0; entry < (position + 1) / a.ratio; ++entry) add(entry);
      }
    }
  }
  std::size_t page = 0;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Batch::Sequence& sequence = batch.sequences[i];
    for (std::size_t t = sequence.first; t < sequence.first + sequence.count; ++t, ++page) {
      const PagedKvView rows = {.base = attended[i].rows, .pages = pages[page].data(), .page_rows = 1};
      call.sequences.push_back(
          {.first = t, .queries = 1, .keys = pages[page].size(), .key_rows = rows, .value_rows = rows});
    }
  }
  return ops.attention(call);
}

}  // namespace

CompressedAttention CompressedAttention::read(const Weights& weights, const std::string& path,
                                              std::size_t ratio) {
  const auto get = [&](const char* name) { return weights.find_named(path + name); };
  CompressedAttention a;
  a.q_a = get("wq_a.weight");
  a.q_a_norm = get("q_norm.weight");
  a.q_b = get("wq_b.weight");
  a.kv = get("wkv.weight");
  a.kv_norm = get("kv_norm.weight");
  a.output_a = get("wo_a.weight");
  a.output_b = get("wo_b.weight");
  a.sinks = get("attn_sink");
  a.ratio = ratio;
  if (ratio == 0) return a;
  a.compressor = read_compressor(weights, path + "compressor.", ratio);
  if (ratio != 4) return a;
  a.index_compressor = read_compressor(weights, path + "indexer.compressor.", ratio);
  a.index_q = get("indexer.wq_b.weight");
  a.index_weights = get("indexer.weights_proj.weight");
  return a;
}

CacheWidth CompressedAttention::cache_width(const CompressedSettings& s) const {
  CacheWidth width = {s.head_dim, 0};
  for (const auto& c : {compressor, index_compressor}) {
    if (c) width.value_width += 2 * c->width();
  }
  return width;
}

Matrix CompressedAttention::forward(const Matrix& x, std::size_t layer, const Batch& batch,
                                    const CompressedSettings& s, Ops& ops, const TapScope& at) const {
  const RopeRule& rule = ratio == 0 ? s.rope : s.compressed_rope;
  const RopeAngles angles = rope_angles(rule, batch, ops);
  const Matrix q_latent =
      ops.rms_norm(ops.linear(x, q_a), q_a_norm, s.epsilon, NormForm::weight_inside);  // [tokens, q_rank]
  const Matrix q =
      normed_heads(ops.linear(q_latent, q_b), s.head_dim, s.epsilon, ops);  // [tokens, heads · dim]
  rotate(q, s.heads, angles, ops);
  at("q", q);
  const Matrix own = ops.rms_norm(ops.linear(x, kv), kv_norm, s.epsilon, NormForm::weight_inside);
  rotate(own, 1, angles, ops);
  at("kv", own);  // [tokens, dim]

  Matrix parts;  // [tokens, value | gate of each compressor]
  for (const auto& c : {compressor, index_compressor}) {
    if (!c) continue;
    const Matrix both = ops.concatenate(ops.linear(x, c->value), ops.linear(x, c->gate));
    parts = parts.empty() ? both : ops.concatenate(parts, both);
  }
  std::vector<Attended> attended;
  IndexCall index{.q = {},
                  .weights = {},
                  .sequences = {},
                  .heads = s.index_heads,
                  .head_dim = s.index_dim,
                  .top_k = s.top_k,
                  .tokens_a_key = ratio};
  for (const Batch::Sequence& sequence : batch.sequences) {
    const Matrix rows = own.row_range(sequence.first, sequence.count);
    if (ratio == 0)
      sequence.cache->put(layer, rows);
    else
      sequence.cache->put(layer, rows, parts.row_range(sequence.first, sequence.count));
    const std::size_t tokens = sequence.cache->length() + sequence.count;
    if (ratio == 0) {
      attended.push_back({rows_until(sequence.cache->keys(layer), tokens, ops), tokens});
      continue;
    }
    const Matrix kept = rows_until(sequence.cache->values(layer), tokens, ops);
    const Matrix entries = entries_of(*compressor, kept.part(0, 2 * compressor->width()), s, ops);
    const Matrix all = ops.allocate(tokens + entries.rows(), s.head_dim);
    ops.store({.base = all}, 0, rows_until(sequence.cache->keys(layer), tokens, ops));
    if (entries.rows() > 0) ops.store({.base = all}, tokens, entries);
    attended.push_back({all, tokens});
    if (!index_compressor) continue;
    const std::size_t before = 2 * compressor->width();
    index.sequences.push_back(
        {sequence.first,
         sequence.count,
         sequence.cache->length(),
         {.base = entries_of(*index_compressor, kept.part(before, kept.columns() - before), s, ops)}});
  }
  KeyChoice chosen;
  if (index_compressor) {
    index.q = ops.linear(q_latent, index_q);
    rotate(index.q, s.index_heads, angles, ops);
    at("index_q", index.q);
    index.weights = ops.linear(x, index_weights);
    at("index_weights", index.weights);
    chosen = ops.choose_keys(index);
    at("index_keys", chosen.positions);
  }

  const Matrix context = attend(q, *this, attended, chosen, batch, s, ops);  // [tokens, heads · dim]
  at("attn_context", context);
  // Values were rotated with their keys: the rotation by the query's own position leaves how far they lie apart.
  rotate(context, s.heads, {angles.cos, ops.multiply(angles.sin, -1)}, ops);
  const std::size_t group = output_a.inputs(), groups = context.columns() / group,
                    rank = output_a.outputs() / groups;
  Matrix narrow;  // [tokens, groups · rank]
  for (std::size_t g = 0; g < groups; ++g) {
    const Matrix y = ops.linear(context.part(g * group, group), output_a.row_range(g * rank, rank));
    narrow = g == 0 ? y : ops.concatenate(narrow, y);
  }
  return ops.linear(narrow, output_b);  // [tokens, hidden]
}

}  // namespace assay
