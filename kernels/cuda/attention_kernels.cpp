// Attention as kernels of the registry: one body, and four rules of how keys are cut.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>

#include "kernels/cuda/attention_arguments.h"
#include "kernels/cuda/registration.h"

namespace assay::cuda {
namespace {

// The sequences of a call whose keys and values are read in one way.
struct Part {
  AttentionCall call;
  unsigned element_bytes = 4;
  AttentionPlan plan;
};

// How a sequence's keys and values are read: by its own shape alone, whatever stands beside it in the call.
enum class Way : std::uint8_t {
  streamed,  // by decode_attention
  in_place,  // as float32 where they lie
  packed     // as the arithmetic's numbers, which float32 are where they lie too
};

// In bfloat16 arithmetic, who decodes reads its cache where it lies, as float32: to pack it first is to move it three
// times for one look. Prompts look often, and have theirs packed. Products are the same, their sums' order is not.
Way way_of(const Arithmetic& arithmetic, const AttentionShape& shape, const SequenceMetadata& span,
           SplitRule rule) {
  if (rule != SplitRule::decoding && rule != SplitRule::by_shape) return Way::packed;
  if (may_stream(shape, {span.queries, span.keys})) return Way::streamed;
  const bool decodes = span.queries * (shape.heads / shape.kv_heads) <= kDecodingRows;
  return decodes && arithmetic.bfloat16() ? Way::in_place : Way::packed;
}

std::vector<Part> parts_of(const DeviceLimits& limits, const Arithmetic& arithmetic,
                           const AttentionCall& call, SplitRule rule) {
  AttentionCall none = call;
  none.sequences.clear();
  const AttentionShape heads = shape_of(4, none);
  std::vector<Part> parts;
  for (const Way way : {Way::streamed, Way::in_place, Way::packed}) {
    Part part = {
        .call = none, .element_bytes = way == Way::packed ? element_bytes(arithmetic) : 4, .plan = {}};
    std::copy_if(call.sequences.begin(), call.sequences.end(), std::back_inserter(part.call.sequences),
                 [&](const SequenceMetadata& span) { return way_of(arithmetic, heads, span, rule) == way; });
    if (part.call.sequences.empty()) continue;
    const AttentionShape shape = shape_of(part.element_bytes, part.call);
    part.plan = way == Way::streamed ? plan_decode_attention(limits, shape, rule)
                                     : plan_attention(limits, shape, rule);
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<LaunchPlan> plans_of_attention(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                           const AttentionCall& call, SplitRule rule) {
  if (arithmetic.storage() != Real::f32 || !is_sound(call) || !call.slopes.empty()) return {};
  if (call.sequences.empty()) return {plan_attention(limits, shape_of(4, call), rule).tiles};
  std::vector<LaunchPlan> plans;
  for (Part& part : parts_of(limits, arithmetic, call, rule)) {
    plans.push_back(std::move(part.plan.tiles));
    if (!part.plan.merges.empty()) plans.push_back(std::move(part.plan.merge));
  }
  return plans;
}

Matrix run_attention(Machine& machine, Ops& ops, const AttentionCall& call,
                     const AttentionLaunchers& launchers, SplitRule rule) {
  Matrix y = ops.allocate(call.q.rows(), call.heads * call.v_dim);
  const std::vector<Part> parts = parts_of(machine.limits(), ops.arithmetic(), call, rule);
  const std::unique_ptr<Staging> staging = machine.stage();
  std::deque<AttentionArguments> all;  // until the kernels are done: what is staged is known by its address
  for (const Part& part : parts) {
    if (part.plan.work.empty()) continue;
    AttentionArguments& arguments = all.emplace_back(ops.arithmetic(), part.call, part.element_bytes,
                                                     part.plan, machine, *staging, launchers.pack);
    arguments.q_from(call.q);
    arguments.args.out = staging->out(y);
    arguments.args.out_stride = y.stride();
    launchers.tiles(part.plan, arguments.args, part.element_bytes, staging->stream());
    if (!part.plan.merges.empty()) launchers.merge(part.plan, arguments.args, staging->stream());
  }
  if (!all.empty()) staging->finish();
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
  add("cuda.auto", "tiles on tensor cores; caches of sequences that decode streamed, in pieces",
      SplitRule::decoding, {.chunk_invariant = false});
  add("cuda.split_fixed",
      fmt::format("flash decoding, keys cut at multiples of {}: bits of a sequence are its own", kFixedSplit),
      SplitRule::fixed, {});
  add("cuda.split", "flash decoding, keys cut into what fills a device", SplitRule::by_shape,
      {.batch_invariant = false, .chunk_invariant = false});
  add("cuda.flash", "keys in tiles of 64 under an online softmax, on tensor cores, not cut", SplitRule::none,
      {});
}

}  // namespace assay::cuda
