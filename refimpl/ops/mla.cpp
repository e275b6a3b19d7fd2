// Multi-head latent attention (DeepSeek-V2, §2.1). The cache holds c = [latent (kv_rank) | rotary key part];
// with kv_b = [W_k; W_v] head by head, the two forms are the same sum, bracketed differently:
//
//   naive      k = [W_k c | r],  v = W_v c                         attention over heads, keys expanded
//   absorbed   q·k = (W_kᵀ q_nope)·c + q_rope·r,  out = W_v Σ p c   attention over one shared head, of width
//                                                                   kv_rank + rope_dim (576 in DeepSeek-V3)
#include <fmt/format.h>

#include <algorithm>

#include "refimpl/ops/mla_matrices.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {
WeightView mla_key_matrix(const MlaCall& call, std::size_t head, bool absorbed) {
  WeightView w;
  if (call.kv_b) {
    w = call.kv_b.row_range(head * (call.nope_dim + call.v_dim), call.nope_dim);  // [nope, kv_rank]
    w.input_major = absorbed;
  } else {
    w = call.k_b.row_range(head * call.kv_rank, call.kv_rank);  // [kv_rank, nope]
    w.input_major = !absorbed;
  }
  w.weight_only = absorbed;
  return w;
}

WeightView mla_value_matrix(const MlaCall& call, std::size_t head, bool absorbed) {  // [v, kv_rank]
  WeightView w = call.kv_b
                     ? call.kv_b.row_range(head * (call.nope_dim + call.v_dim) + call.nope_dim, call.v_dim)
                     : call.v_b.row_range(head * call.v_dim, call.v_dim);
  w.weight_only = absorbed;
  return w;
}

namespace {

// Copies `from` into columns `first` … of `to`.
void place(const Matrix& from, const Matrix& to, std::size_t first) {
  with_elements(from.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < from.rows(); ++r)
      std::copy_n(from.row<T>(r), from.columns(), to.row<T>(r) + first);
  });
}

Matrix absorbed(Ops& ops, const MlaCall& call, const WeightView& sinks) {
  const std::size_t qk = call.nope_dim + call.rope_dim, width = call.kv_rank + call.rope_dim;
  const Matrix q = ops.allocate(call.q.rows(), call.heads * width);  // [tokens, heads · (kv_rank + rope)]
  for (std::size_t h = 0; h < call.heads; ++h) {
    const Matrix head = call.q.part(h * qk, qk);
    place(ops.linear(head.part(0, call.nope_dim), mla_key_matrix(call, h, true)), q, h * width);
    place(head.part(call.nope_dim, call.rope_dim), q, h * width + call.kv_rank);
  }
  AttentionCall shared = {.q = q,
                          .sequences = call.sequences,
                          .heads = call.heads,
                          .kv_heads = 1,
                          .qk_dim = width,
                          .v_dim = call.kv_rank,
                          .scale = call.scale,
                          .sinks = sinks};
  for (SequenceMetadata& span : shared.sequences) span.value_rows = span.key_rows;  // the latent comes first
  const Matrix mixed = ops.attention(shared);                         // [tokens, heads · kv_rank]
  Matrix out = ops.allocate(call.q.rows(), call.heads * call.v_dim);  // [tokens, heads · v]
  for (std::size_t h = 0; h < call.heads; ++h)
    place(ops.linear(mixed.part(h * call.kv_rank, call.kv_rank), mla_value_matrix(call, h, true)), out,
          h * call.v_dim);
  return out;
}

// Keys and values of one sequence, all heads.
SequenceMetadata expand(Ops& ops, const MlaCall& call, const SequenceMetadata& span) {
  const std::size_t qk = call.nope_dim + call.rope_dim;
  std::vector<std::size_t> rows(span.keys);
  for (std::size_t k = 0; k < span.keys; ++k) rows[k] = span.key_rows.row(k);
  const Matrix cached = ops.gather(span.key_rows.base, rows);  // [keys, kv_rank + rope]
  const Matrix latent = cached.part(0, call.kv_rank), rotated = cached.part(call.kv_rank, call.rope_dim);
  const Matrix keys = ops.allocate(span.keys, call.heads * qk);
  const Matrix values = ops.allocate(span.keys, call.heads * call.v_dim);
  for (std::size_t h = 0; h < call.heads; ++h) {
    place(ops.linear(latent, mla_key_matrix(call, h, false)), keys, h * qk);
    place(rotated, keys, h * qk + call.nope_dim);
    place(ops.linear(latent, mla_value_matrix(call, h, false)), values, h * call.v_dim);
  }
  SequenceMetadata expanded = span;
  expanded.key_rows = {.base = keys};
  expanded.value_rows = {.base = values};
  return expanded;
}

Matrix naive(Ops& ops, const MlaCall& call, const WeightView& sinks) {
  AttentionCall full = {.q = call.q,
                        .sequences = {},
                        .heads = call.heads,
                        .kv_heads = call.heads,
                        .qk_dim = call.nope_dim + call.rope_dim,
                        .v_dim = call.v_dim,
                        .scale = call.scale,
                        .sinks = sinks};
  for (const SequenceMetadata& span : call.sequences) full.sequences.push_back(expand(ops, call, span));
  return ops.attention(full);
}

}  // namespace

Matrix mla_by_attention(Ops& ops, const MlaCall& call, const WeightView& sinks) {
  if (call.q.columns() != call.heads * (call.nope_dim + call.rope_dim))
    throw Error::internal(fmt::format("mla: q [{}, {}] for {} heads of {} + {}", call.q.rows(),
                                      call.q.columns(), call.heads, call.nope_dim, call.rope_dim));
  return call.form == MlaForm::absorbed ? absorbed(ops, call, sinks) : naive(ops, call, sinks);
}

Matrix ReferenceOps::run(const MlaCall& call) {
  return mla_by_attention(*this, call);
}

}  // namespace assay
