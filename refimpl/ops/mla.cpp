// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, §2.1). The cache has, of every token, its
// latent c (kv_rank numbers) and one turned key part r for all heads. With W_UK and W_UV a head's two halves
// of kv_b:
//
//   naive      k = [W_UK c | r],  v = W_UV c,            o = Σ softmax(scale · q·k) v
//   absorbed   q' = [W_UKᵀ q_nope | q_rope],  k' = [c | r],
//              o = W_UV Σ softmax(scale · q'·k') c
//
// since q_nope · W_UK c = W_UKᵀ q_nope · c. Absorbed, all heads share one key of kv_rank + rope_dim numbers
// and one value of kv_rank (DeepSeek-V3: 576 and 512): multi-query attention over the cache as it is.
#include <algorithm>

#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

// Columns [from, from + count) of every row of `source` into columns [to, to + count) of `target`.
void copy_columns(const Matrix& source, std::size_t from, Matrix& target, std::size_t to, std::size_t count) {
  with_elements(source.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < source.rows(); ++r)
      std::copy_n(source.row<T>(r) + from, count, target.row<T>(r) + to);
  });
}

WeightView turned(WeightView weight) {
  weight.input_major = !weight.input_major;
  return weight;
}

// W_UK and W_UV of one head as linear layers from the latent, out of kv_b or of GGUF's two halves (whose key
// half is stored turned).
WeightView key_up(const MlaCall& c, std::size_t head) {  // [nope_dim, kv_rank]
  if (c.kv_b) return c.kv_b.row_range(head * (c.nope_dim + c.v_dim), c.nope_dim);
  return turned(c.k_b.row_range(head * c.kv_rank, c.kv_rank));
}
WeightView value_up(const MlaCall& c, std::size_t head) {  // [v_dim, kv_rank]
  if (c.kv_b) return c.kv_b.row_range(head * (c.nope_dim + c.v_dim) + c.nope_dim, c.v_dim);
  return c.v_b.row_range(head * c.v_dim, c.v_dim);
}

Matrix cached_rows(Ops& ops, const AttentionSpan& span) {
  std::vector<std::size_t> rows;
  for (std::size_t k = 0; k < span.keys; ++k) rows.push_back(span.key_rows.row(k));
  return ops.gather(span.key_rows.base, rows);  // [keys, kv_rank + rope_dim]
}

// Keys and values of all heads, by one matrix where it is one.
void expand(Ops& ops, const MlaCall& c, const Matrix& latent, Matrix& keys, Matrix& values) {
  Matrix both;  // [keys, heads · (nope + v)]
  if (c.kv_b) both = ops.linear(latent, c.kv_b);
  for (std::size_t h = 0; h < c.heads; ++h) {
    const std::size_t k_at = h * (c.nope_dim + c.rope_dim), v_at = h * c.v_dim;
    if (c.kv_b) {
      const std::size_t first = h * (c.nope_dim + c.v_dim);
      copy_columns(both, first, keys, k_at, c.nope_dim);
      copy_columns(both, first + c.nope_dim, values, v_at, c.v_dim);
    } else {
      copy_columns(ops.linear(latent, key_up(c, h)), 0, keys, k_at, c.nope_dim);
      copy_columns(ops.linear(latent, value_up(c, h)), 0, values, v_at, c.v_dim);
    }
  }
}

Matrix naive(Ops& ops, const MlaCall& c) {
  AttentionCall call{.q = c.q,
                     .spans = c.spans,
                     .heads = c.heads,
                     .kv_heads = c.heads,
                     .qk_dim = c.nope_dim + c.rope_dim,
                     .v_dim = c.v_dim,
                     .scale = c.scale};
  for (AttentionSpan& span : call.spans) {
    const Matrix cached = cached_rows(ops, span);                  // [keys, kv_rank + rope]
    Matrix keys = ops.allocate(span.keys, c.heads * call.qk_dim);  // [keys, heads · (nope + rope)]
    Matrix values = ops.allocate(span.keys, c.heads * c.v_dim);    // [keys, heads · v]
    expand(ops, c, cached.part(0, c.kv_rank), keys, values);
    for (std::size_t h = 0; h < c.heads; ++h)
      copy_columns(cached, c.kv_rank, keys, h * call.qk_dim + c.nope_dim, c.rope_dim);
    span.key_rows = {.base = keys};
    span.value_rows = {.base = values};
  }
  return ops.attention(call);  // [tokens, heads · v]
}

Matrix absorbed(Ops& ops, const MlaCall& c) {
  const std::size_t q_dim = c.nope_dim + c.rope_dim, k_dim = c.kv_rank + c.rope_dim;
  Matrix q = ops.allocate(c.q.rows(), c.heads * k_dim);  // [tokens, heads · (kv_rank + rope)]
  for (std::size_t h = 0; h < c.heads; ++h) {
    const Matrix nope = c.q.part(h * q_dim, c.nope_dim);
    copy_columns(ops.linear(nope, turned(key_up(c, h))), 0, q, h * k_dim, c.kv_rank);
    copy_columns(c.q, h * q_dim + c.nope_dim, q, h * k_dim + c.kv_rank, c.rope_dim);
  }
  AttentionCall call{.q = q,
                     .spans = c.spans,
                     .heads = c.heads,
                     .kv_heads = 1,
                     .qk_dim = k_dim,
                     .v_dim = c.kv_rank,
                     .scale = c.scale};
  for (AttentionSpan& span : call.spans) {
    span.value_rows = span.key_rows;
    span.value_rows.base = span.key_rows.base.part(0, c.kv_rank);
  }
  const Matrix latent = ops.attention(call);                 // [tokens, heads · kv_rank]
  Matrix out = ops.allocate(c.q.rows(), c.heads * c.v_dim);  // [tokens, heads · v]
  for (std::size_t h = 0; h < c.heads; ++h) {
    const Matrix value = ops.linear(latent.part(h * c.kv_rank, c.kv_rank), value_up(c, h));
    copy_columns(value, 0, out, h * c.v_dim, c.v_dim);
  }
  return out;
}

}  // namespace

Matrix ReferenceOps::mla(const MlaCall& call) {
  if (call.q.columns() != call.heads * (call.nope_dim + call.rope_dim))
    throw Error::internal("queries do not fit their heads");
  return call.form == MlaForm::naive ? naive(*this, call) : absorbed(*this, call);
}

}  // namespace assay
