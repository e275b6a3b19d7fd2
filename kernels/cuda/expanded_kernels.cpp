// Naive MLA as a kernel of the registry: keys and values of all heads are made of the cached latents, by the
// products that absorbed MLA has around it, where and as flash_attention.cuh reads them. Pages stay where
// they are: a pool is expanded row by row, and read through the tables of the latents.
#include "kernels/cuda/attention_arguments.h"
#include "kernels/cuda/head_matrices.h"
#include "kernels/cuda/registration.h"
#include "refimpl/ops/w8a8.h"

namespace assay::cuda {
namespace {

AttentionCall expanded_attention(const MlaCall& call) {
  AttentionCall full = {.q = call.q,
                        .sequences = call.sequences,
                        .heads = call.heads,
                        .kv_heads = call.heads,
                        .qk_dim = call.nope_dim + call.rope_dim,
                        .v_dim = call.v_dim,
                        .scale = call.scale};
  for (SequenceMetadata& span : full.sequences) span.value_rows = span.key_rows;
  return full;
}

// One of a cached row's two expansions, of all heads.
struct Expansion {
  const void* matrices;
  HeadFormat format;
  std::size_t made, kept;  // columns of a head: of the product, and rotated ones taken as they are
};

class ExpandedRun {
 public:
  ExpandedRun(Machine& machine, Ops& ops, const MlaCall& call, const MlaLaunchers& launchers)
      : machine_(machine),
        ops_(ops),
        call_(call),
        launchers_(launchers),
        staging_(machine.stage()),
        bytes_(element_bytes(ops.arithmetic())) {}

  Matrix run() {
    const AttentionCall full = expanded_attention(call_);
    Matrix y = ops_.allocate(call_.q.rows(), call_.heads * call_.v_dim);
    const AttentionPlan plan = plan_attention(machine_.limits(), shape_of(bytes_, full), SplitRule::decoding);
    if (plan.work.empty()) return y;
    const Arithmetic& arithmetic = ops_.arithmetic();
    const Expansion keys = {key_matrices(*staging_, arithmetic, call_, KeyMatrix::expanded),
                            {call_.heads, full.qk_dim, bytes_},
                            call_.nope_dim,
                            call_.rope_dim};
    const Expansion values = {
        value_matrices(*staging_, arithmetic, call_), {call_.heads, call_.v_dim, bytes_}, call_.v_dim, 0};
    AttentionArguments attention(arithmetic, full, bytes_, plan, machine_, *staging_,
                                 launchers_.attention.pack,
                                 {.keys = [&](const Matrix& rows) { return expanded(rows, keys); },
                                  .values = [&](const Matrix& rows) { return expanded(rows, values); }});
    attention.q_from(call_.q);
    attention.args.out = staging_->out(y);
    attention.args.out_stride = y.stride();
    launchers_.attention.tiles(plan, attention.args, bytes_, staging_->stream());
    if (!plan.merges.empty()) launchers_.attention.merge(plan, attention.args, staging_->stream());
    staging_->finish();
    return y;
  }

 private:
  PackedRows expanded(const Matrix& rows, const Expansion& to) {
    const std::size_t head = to.format.padded(), stride = call_.heads * head;
    void* out = staging_->scratch(rows.rows() * stride * bytes_);
    launchers_.into(plan_mla_product(machine_.limits(), rows.rows(), call_.heads, call_.kv_rank, to.made),
                    {.x = staging_->in(rows.part(0, call_.kv_rank + call_.rope_dim)),
                     .w = to.matrices,
                     .y = out,
                     .x_stride = rows.stride(),
                     .x_head = 0,  // the same latents for every head
                     .y_stride = stride,
                     .y_head = head,
                     .tokens = narrow(rows.rows()),
                     .inputs = narrow(call_.kv_rank),
                     .outputs = narrow(to.made),
                     .x_tail = narrow(to.kept),
                     .y_tail = narrow(head - to.made),
                     .round = ops_.arithmetic().bfloat16()},
                    bytes_, staging_->stream());
    return {out, stride};
  }

  Machine& machine_;
  Ops& ops_;
  const MlaCall& call_;
  const MlaLaunchers& launchers_;
  std::unique_ptr<Staging> staging_;
  unsigned bytes_;
};

bool is_sound_expanded(const Arithmetic& arithmetic, const MlaCall& call) {
  if (call.form != MlaForm::naive || call.heads == 0 || call.kv_rank == 0 || call.nope_dim == 0 ||
      call.v_dim == 0)
    return false;
  // Products of 8 bits are those of linear layers.
  for (const WeightView* w : {&call.kv_b, &call.k_b, &call.v_b}) {
    if (*w && is_w8a8(*w, arithmetic)) return false;
  }
  AttentionCall latents = {.q = call.q,
                           .sequences = call.sequences,
                           .heads = call.heads,
                           .kv_heads = 1,
                           .qk_dim = call.kv_rank + call.rope_dim,
                           .v_dim = call.kv_rank};
  for (SequenceMetadata& span : latents.sequences) span.value_rows = span.key_rows;
  return call.q.columns() == call.heads * (call.nope_dim + call.rope_dim) && are_sound_sequences(latents);
}

std::vector<LaunchPlan> plans_of_expanded(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                          const MlaCall& call) {
  if (arithmetic.storage() != Real::f32 || !is_sound_expanded(arithmetic, call)) return {};
  PackedCaches pools;
  for (const SequenceMetadata& span : call.sequences) pools.add(span.key_rows, span.keys);
  const std::size_t rows = pools.most_rows();
  AttentionPlan attention = plan_attention(
      limits, shape_of(element_bytes(arithmetic), expanded_attention(call)), SplitRule::decoding);
  std::vector<LaunchPlan> plans = {plan_mla_product(limits, rows, call.heads, call.kv_rank, call.nope_dim),
                                   plan_mla_product(limits, rows, call.heads, call.kv_rank, call.v_dim),
                                   std::move(attention.tiles)};
  if (!attention.merges.empty()) plans.push_back(std::move(attention.merge));
  return plans;
}

Edges expanded_edges() {
  return {{.of = "keys", .from = 9}, {.of = "queries", .from = kDecodingRows + 1}};
}

}  // namespace

void add_expanded_kernels(Registry& registry, Machine& machine, const MlaLaunchers& launchers) {
  Kernel<MlaCall> kernel = cuda_kernel<MlaCall>(
      machine, "cuda.expanded", "naive: latents expanded on the device, then attention as ever",
      expanded_edges(), plans_of_expanded, [launchers](Machine& m, Ops& ops, const MlaCall& call) {
        return ExpandedRun(m, ops, call, launchers).run();
      });
  kernel.invariants = {.chunk_invariant = false};
  kernel.roundoffs.accumulator = kTensorRoundoff;
  registry.add(std::move(kernel));
}

}  // namespace assay::cuda
