#include "kernels/cpu/mla.h"

#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/team.h"
#include "refimpl/ops/mla_matrices.h"

namespace assay::cpu {
namespace {

// [tokens, heads · (nope + rope)] → [tokens, heads · (kv_rank + rope)]
void absorb_queries(const MlaCall& call, const Arithmetic& arithmetic, const Matrix& q, int jobs,
                    SumOrder order) {
  const std::size_t qk = call.nope_dim + call.rope_dim, width = call.kv_rank + call.rope_dim;
  team_for(jobs, call.heads, [&](std::size_t h) {
    const Matrix from = call.q.part(h * qk, qk), to = q.part(h * width, width);
    linear(from.part(0, call.nope_dim), mla_key_matrix(call, h, true), {}, arithmetic,
           to.part(0, call.kv_rank), 1, ResultRounding::as_arithmetic, order);
    for (std::size_t t = 0; t < from.rows(); ++t)
      std::copy_n(from.row<float>(t) + call.nope_dim, call.rope_dim, to.row<float>(t) + call.kv_rank);
  });
}

}  // namespace

Matrix absorbed_mla(Ops& ops, const MlaCall& call, SumOrder order) {
  const std::size_t tokens = call.q.rows(), width = call.kv_rank + call.rope_dim;
  const Matrix q = ops.allocate(tokens, call.heads * width);
  absorb_queries(call, ops.arithmetic(), q, ops.jobs(), order);
  AttentionCall shared = {.q = q,
                          .sequences = call.sequences,
                          .heads = call.heads,
                          .kv_heads = 1,
                          .qk_dim = width,
                          .v_dim = call.kv_rank,
                          .scale = call.scale};
  for (SequenceMetadata& span : shared.sequences) span.value_rows = span.key_rows;  // the latent comes first
  const Matrix mixed = ops.allocate(tokens, call.heads * call.kv_rank);
  order == SumOrder::steady ? steady_attention(shared, mixed, ops.jobs())
                            : attention(shared, mixed, ops.jobs());
  Matrix out = ops.allocate(tokens, call.heads * call.v_dim);
  team_for(ops.jobs(), call.heads, [&](std::size_t h) {
    linear(mixed.part(h * call.kv_rank, call.kv_rank), mla_value_matrix(call, h, true), {}, ops.arithmetic(),
           out.part(h * call.v_dim, call.v_dim), 1, ResultRounding::as_arithmetic, order);
  });
  return out;
}

}  // namespace assay::cpu
