// Attention as kernels of the registry: one body, and four rules of how keys are cut.
#include "kernels/cuda/attention_arguments.h"
#include "kernels/cuda/registration.h"

namespace assay::cuda {
namespace {

std::vector<LaunchPlan> plans_of_attention(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                           const AttentionCall& call, SplitRule rule) {
  if (arithmetic.storage() != Real::f32 || !is_sound(call) || !call.slopes.empty()) return {};
  AttentionPlan plan = plan_attention(limits, shape_of(arithmetic, call), rule);
  std::vector<LaunchPlan> plans = {std::move(plan.tiles)};
  if (!plan.merges.empty()) plans.push_back(std::move(plan.merge));
  return plans;
}

Matrix run_attention(Machine& machine, Ops& ops, const AttentionCall& call,
                     const AttentionLaunchers& launchers, SplitRule rule) {
  Matrix y = ops.allocate(call.q.rows(), call.heads * call.v_dim);
  const AttentionPlan plan = plan_attention(machine.limits(), shape_of(ops.arithmetic(), call), rule);
  if (plan.work.empty()) return y;
  const std::unique_ptr<Staging> staging = machine.stage();
  AttentionArguments arguments(ops.arithmetic(), call, plan, machine, *staging, launchers.pack);
  arguments.q_from(call.q);
  arguments.args.out = staging->out(y);
  arguments.args.out_stride = y.stride();
  launchers.tiles(plan, arguments.args, element_bytes(ops.arithmetic()), staging->stream());
  if (!plan.merges.empty()) launchers.merge(plan, arguments.args, staging->stream());
  staging->finish();
  return y;
}

}  // namespace

void add_attention_kernels(Registry& registry, Machine& machine, const AttentionLaunchers& launchers) {
  const auto add = [&](std::string name, std::string about, SplitRule rule, Invariants invariants) {
    Kernel<AttentionCall> kernel = cuda_kernel<AttentionCall>(
        machine, std::move(name), std::move(about), attention_edges(),
        [rule](const DeviceLimits& limits, const Arithmetic& arithmetic, const AttentionCall& call) {
          return plans_of_attention(limits, arithmetic, call, rule);
        },
        [launchers, rule](Machine& m, Ops& ops, const AttentionCall& call) {
          return run_attention(m, ops, call, launchers, rule);
        });
    kernel.invariants = invariants;
    kernel.roundoffs.accumulator = kTensorRoundoff;
    registry.add(std::move(kernel));
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
