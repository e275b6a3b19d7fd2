// Absorbed MLA as kernels of the registry: queries into the latent space, attention there, and out of it,
// without leaving the device.
#include <fmt/format.h>

#include "kernels/cuda/attention_arguments.h"
#include "kernels/cuda/head_matrices.h"
#include "kernels/cuda/registration.h"

namespace assay::cuda {
namespace {

// The attention over one shared head that the absorbed form is.
AttentionCall shared_attention(const MlaCall& call) {
  return {.q = {},
          .sequences = call.sequences,
          .heads = call.heads,
          .kv_heads = 1,
          .qk_dim = call.kv_rank + call.rope_dim,
          .v_dim = call.kv_rank,
          .scale = call.scale};
}

struct MlaPlan {
  AttentionPlan attention;
  LaunchPlan into, out_of;
};
MlaPlan plan_of(const DeviceLimits& limits, const Arithmetic& arithmetic, const MlaCall& call,
                SplitRule rule) {
  return {plan_mla_attention(limits, shape_of(element_bytes(arithmetic), shared_attention(call)), rule),
          plan_mla_product(limits, call.q.rows(), call.heads, call.nope_dim, call.kv_rank),
          plan_mla_product(limits, call.q.rows(), call.heads, call.kv_rank, call.v_dim)};
}

class MlaRun {
 public:
  MlaRun(Machine& machine, Ops& ops, const MlaCall& call, const MlaPlan& plan, const MlaLaunchers& launchers,
         Staging& staging)
      : call_(call),
        plan_(plan),
        launchers_(launchers),
        staging_(staging),
        arithmetic_(ops.arithmetic()),
        bytes_(element_bytes(arithmetic_)),
        attention_(arithmetic_, shared_attention(call), bytes_, plan.attention, machine, staging,
                   launchers.attention.pack, readers(machine)) {}

  void run(const Matrix& y) {
    AttentionArgs& a = attention_.args;
    a.q = into_latents();
    const std::size_t tokens = call_.q.rows();
    a.out = static_cast<float*>(staging_.scratch(tokens * call_.heads * call_.kv_rank * sizeof(float)));
    a.out_stride = call_.heads * call_.kv_rank;
    launchers_.attention.tiles(plan_.attention, a, bytes_, staging_.stream());
    if (!plan_.attention.merges.empty()) launchers_.attention.merge(plan_.attention, a, staging_.stream());
    out_of_latents(y);
    staging_.finish();
  }

 private:
  // Rows as they lie for mla_wgmma.cuh, else packed.
  PoolReaders readers(Machine& machine) {
    PoolReaders readers = PoolReaders::of_latents();
    if (!plan_.attention.wgmma) return readers;
    const HeadFormat rows = {.heads = 1, .dim = call_.kv_rank + call_.rope_dim, .element_bytes = 4};
    readers.keys = [this, &machine, rows](const Matrix& pool) {
      return packed_rows(machine.limits(), staging_, pool.part(0, rows.dim), rows, launchers_.attention.pack);
    };
    return readers;
  }

  const void* into_latents() {
    AttentionArgs& a = attention_.args;
    a.q_stride = call_.heads * a.head_stride;
    void* latent = staging_.scratch(call_.q.rows() * a.q_stride * bytes_);
    launchers_.into(plan_.into,
                    {.x = staging_.in(call_.q),
                     .w = key_matrices(staging_, arithmetic_, call_, KeyMatrix::absorbed),
                     .y = latent,
                     .x_stride = call_.q.stride(),
                     .x_head = call_.nope_dim + call_.rope_dim,
                     .y_stride = a.q_stride,
                     .y_head = a.head_stride,
                     .tokens = narrow(call_.q.rows()),
                     .inputs = narrow(call_.nope_dim),
                     .outputs = narrow(call_.kv_rank),
                     .x_tail = narrow(call_.rope_dim),
                     .y_tail = narrow(a.head_stride - call_.kv_rank),
                     .round = arithmetic_.bfloat16()},
                    bytes_, staging_.stream());
    return latent;
  }

  void out_of_latents(const Matrix& y) {
    const AttentionArgs& a = attention_.args;
    launchers_.out_of(plan_.out_of,
                      {.x = a.out,
                       .w = value_matrices(staging_, arithmetic_, call_),
                       .y = staging_.out(y),
                       .x_stride = a.out_stride,
                       .x_head = call_.kv_rank,
                       .y_stride = y.stride(),
                       .y_head = call_.v_dim,
                       .tokens = narrow(call_.q.rows()),
                       .inputs = narrow(call_.kv_rank),
                       .outputs = narrow(call_.v_dim),
                       .round = arithmetic_.bfloat16()},
                      bytes_, staging_.stream());
  }

  const MlaCall& call_;
  const MlaPlan& plan_;
  const MlaLaunchers& launchers_;
  Staging& staging_;
  Arithmetic arithmetic_;
  unsigned bytes_;
  AttentionArguments attention_;
};

bool is_sound(const MlaCall& call) {
  if (call.form != MlaForm::absorbed || call.heads == 0 || call.nope_dim == 0 || call.v_dim == 0)
    return false;
  if (call.q.empty() || call.q.columns() != call.heads * (call.nope_dim + call.rope_dim)) return false;
  AttentionCall shared = shared_attention(call);
  shared.q = call.q;
  for (SequenceMetadata& span : shared.sequences) span.value_rows = span.key_rows;
  return are_sound_sequences(shared);
}

std::vector<LaunchPlan> plans_of_mla(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                     const MlaCall& call, SplitRule rule) {
  if (arithmetic.storage() != Real::f32 || !is_sound(call)) return {};
  MlaPlan plan = plan_of(limits, arithmetic, call, rule);
  std::vector<LaunchPlan> plans = {std::move(plan.into), std::move(plan.attention.tiles)};
  if (!plan.attention.merges.empty()) plans.push_back(std::move(plan.attention.merge));
  plans.push_back(std::move(plan.out_of));
  return plans;
}

Matrix run_mla(Machine& machine, Ops& ops, const MlaCall& call, const MlaLaunchers& launchers,
               SplitRule rule) {
  Matrix y = ops.allocate(call.q.rows(), call.heads * call.v_dim);
  const MlaPlan plan = plan_of(machine.limits(), ops.arithmetic(), call, rule);
  if (plan.attention.work.empty()) return y;
  const std::unique_ptr<Staging> staging = machine.stage();
  MlaRun(machine, ops, call, plan, launchers, *staging).run(y);
  return y;
}

}  // namespace

void add_mla_kernels(Registry& registry, Machine& machine, const MlaLaunchers& launchers) {
  const auto add = [&](const std::string& name, const std::string& about, SplitRule rule,
                       Invariants invariants) {
    Kernel<MlaCall> kernel = cuda_kernel<MlaCall>(
        machine, name, about, mla_edges(),
        [rule](const DeviceLimits& limits, const Arithmetic& arithmetic, const MlaCall& call) {
          return plans_of_mla(limits, arithmetic, call, rule);
        },
        [launchers, rule](Machine& m, Ops& ops, const MlaCall& call) {
          return run_mla(m, ops, call, launchers, rule);
        });
    kernel.invariants = invariants;
    kernel.roundoffs.accumulator = kTensorRoundoff;
    registry.add(std::move(kernel));
  };
  add("cuda.absorbed", "a cached row read once for all heads, keys cut into what fills a device",
      SplitRule::by_shape, {.batch_invariant = false, .chunk_invariant = false});
  add("cuda.absorbed_fixed",
      fmt::format("the same, keys cut at multiples of {}: bits of a sequence are its own", kFixedMlaSplit),
      SplitRule::fixed, {});
}

}  // namespace assay::cuda
