// Attention as kernels of the registry: one body, and four rules of how keys are cut.
#include "core/system/error.h"
#include "kernels/cuda/attention_arguments.h"
#include "kernels/registry.h"

namespace assay::cuda {
namespace {

Matrix run_attention(Ops& ops, const AttentionCall& call, Machine& machine,
                     const AttentionLaunchers& launchers, SplitRule rule) {
  Matrix y = ops.allocate(call.q.rows(), call.heads * call.v_dim);
  const AttentionPlan plan = plan_attention(machine.limits(), shape_of(ops.arithmetic(), call), rule);
  if (plan.work.empty()) return y;
  require_fits(plan.tiles);
  require_fits(plan.merge);
  const std::unique_ptr<Staging> staging = machine.stage();
  AttentionArguments arguments(ops.arithmetic(), call, plan, *staging);
  arguments.q_from(call.q);
  arguments.args.out = staging->out(y);
  arguments.args.out_stride = static_cast<std::uint32_t>(y.stride());
  launchers.tiles(plan, arguments.args, element_bytes(ops.arithmetic()), staging->stream());
  if (!plan.merges.empty()) launchers.merge(plan, arguments.args, staging->stream());
  staging->finish();
  return y;
}

bool takes_attention(const Arithmetic& arithmetic, const AttentionCall& call, Machine& machine,
                     SplitRule rule) {
  if (!machine.unavailable().empty() || arithmetic.storage() != Real::f32 || !is_sound(call)) return false;
  const AttentionPlan plan = plan_attention(machine.limits(), shape_of(arithmetic, call), rule);
  return plan.tiles.fits && plan.merge.fits;
}

}  // namespace

void add_attention_kernels(Registry& registry, Machine& machine, const AttentionLaunchers& launchers) {
  const auto add = [&](std::string name, std::string about, SplitRule rule, Promises promises) {
    registry.add(Kernel<AttentionCall>{
        .name = std::move(name),
        .about = std::move(about),
        .device = Device::cuda,
        .takes = [&machine, rule](
                     const Arithmetic& arithmetic,
                     const AttentionCall& call) { return takes_attention(arithmetic, call, machine, rule); },
        .run = [&machine, launchers, rule](
                   Ops& ops,
                   const AttentionCall& call) { return run_attention(ops, call, machine, launchers, rule); },
        .promises = promises,
        .accumulator_roundoff = kTensorRoundoff,
        .unavailable = [&machine] { return machine.unavailable(); }});
  };
  add("cuda.auto", "tiles on tensor cores; keys of sequences that decode cut at multiples of 512",
      SplitRule::decoding, {.chunk_invariant = false});
  add("cuda.split_fixed", "flash decoding, keys cut at multiples of 512: bits of a sequence are its own",
      SplitRule::fixed, {});
  add("cuda.split", "flash decoding, keys cut into what fills a device", SplitRule::by_shape,
      {.batch_invariant = false, .chunk_invariant = false});
  add("cuda.flash", "keys in tiles of 64 under an online softmax, on tensor cores, not cut", SplitRule::none,
      {});
}

}  // namespace assay::cuda
