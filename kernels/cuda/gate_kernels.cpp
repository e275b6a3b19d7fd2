// moe_gate as a kernel of the registry, and its launch.
#include <fmt/format.h>

#include <limits>

#include "kernels/cuda/gate.h"
#include "kernels/cuda/registration.h"
#include "kernels/cuda/stored_argument.h"

namespace assay::cuda {

std::size_t gate_bytes(std::size_t experts, std::size_t top_k, std::size_t groups) {
  const std::size_t bytes = (2 * experts + groups + top_k) * sizeof(double) + experts + groups;
  return round_up(bytes, 16);
}

LaunchPlan plan_gate(const DeviceLimits& limits, const GateShape& shape) {
  const std::size_t bytes = gate_bytes(shape.experts, shape.top_k, shape.groups);
  const unsigned teams = 4 * bytes <= limits.shared_per_block ? 4 : 1;
  LaunchChoice choice = {.kernel = "moe_gate", .threads = teams * kWarp, .registers = 64};
  choice.variant = teams == 1 ? "a block a token" : "a warp a token";
  choice.grid.x = static_cast<unsigned>(blocks_for(shape.tokens, teams));
  choice.shared_bytes = teams * bytes;
  choice.why = fmt::format("{} experts are {} bytes of a warp", shape.experts, bytes);
  return checked_plan(limits, std::move(choice));
}

Edges gate_edges() {
  return {{.of = "m", .every = 4}, {.of = "experts", .every = kWarp}};
}

namespace {

GateShape gate_shape_of(const MoeGateCall& call) {
  return {.tokens = call.logits.rows(),
          .experts = call.logits.columns(),
          .top_k = call.rule.top_k,
          .groups = call.rule.groups};
}

std::vector<LaunchPlan> plans_of_gate(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                      const MoeGateCall& call) {
  const GateRule& rule = call.rule;
  const std::size_t experts = call.logits.columns();
  const bool fits = rule.top_k != 0 && rule.top_k <= experts && rule.groups != 0 &&
                    experts % rule.groups == 0 && rule.chosen_groups <= rule.groups;
  if (arithmetic.storage() != Real::f32 || !fits || (call.correction && !is_stored_vector(call.correction)))
    return {};
  return {plan_gate(limits, gate_shape_of(call))};
}

Routing run_gate(Machine& machine, Ops& ops, const MoeGateCall& call, const GateLaunchers& launchers) {
  const GateRule& rule = call.rule;
  const std::size_t tokens = call.logits.rows();
  Routing routing = {rule.top_k, std::vector<std::int32_t>(tokens * rule.top_k),
                     ops.allocate(tokens, rule.top_k)};
  if (tokens == 0) return routing;
  const std::unique_ptr<Staging> staging = machine.stage();
  const GateArguments arguments = {
      .logits = staging->in(call.logits),
      .stride = call.logits.stride(),
      .tokens = static_cast<std::uint32_t>(tokens),
      .experts = static_cast<std::uint32_t>(call.logits.columns()),
      .top_k = static_cast<std::uint32_t>(rule.top_k),
      .groups = static_cast<std::uint32_t>(rule.groups),
      .chosen_groups = static_cast<std::uint32_t>(rule.chosen_groups),
      .correction = stored_vector(*staging, call.correction),
      .sigmoid = rule.score == GateRule::Score::sigmoid,
      .top_k_first = rule.top_k_first,
      .renormalize = rule.renormalize,
      .pairs = rule.group_score == GateRule::GroupScore::sum_of_two,
      .masked = rule.masked_is_zero ? 0 : -std::numeric_limits<double>::infinity(),
      .epsilon = rule.epsilon,
      .scale = rule.scale,
      .bfloat16 = rule.rounding == ResultRounding::as_arithmetic && ops.arithmetic().bfloat16(),
      .chosen = static_cast<std::int32_t*>(
          staging->write(routing.experts.data(), routing.experts.size() * sizeof(std::int32_t))),
      .weights = staging->out(routing.weights),
      .weights_stride = routing.weights.stride(),
  };
  launchers.gate(plan_gate(machine.limits(), gate_shape_of(call)), arguments, staging->stream());
  staging->finish();
  return routing;
}

}  // namespace

void add_gate_kernels(Registry& registry, Machine& machine, const GateLaunchers& launchers) {
  registry.add(cuda_kernel<MoeGateCall>(
      machine, "cuda.fused", "scores, groups, experts and weights of a token in one warp", gate_edges(),
      plans_of_gate, [launchers](Machine& m, Ops& ops, const MoeGateCall& call) {
        return run_gate(m, ops, call, launchers);
      }));
}

}  // namespace assay::cuda
