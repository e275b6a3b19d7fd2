// rms_norm as a kernel of the registry.
#include "kernels/cuda/machine.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/stored_argument.h"
#include "kernels/registry.h"

namespace assay::cuda {
namespace {

WeightUse use_of(NormForm form) {
  switch (form) {
    case NormForm::weight_last: return WeightUse::last;
    case NormForm::weight_inside: return WeightUse::inside;
    case NormForm::one_plus_weight: return WeightUse::one_plus;
  }
  return WeightUse::last;
}

std::size_t group_of(const RmsNormCall& call) {
  return call.weight.rows * call.weight.columns;
}

RmsNormShape shape_of(const RmsNormCall& call) {
  return {.count = call.x.rows() * (call.x.columns() / group_of(call)), .group = group_of(call)};
}

Matrix run_rms_norm(Ops& ops, const RmsNormCall& call, Machine& machine, const NormLaunchers& launchers) {
  Matrix y = ops.allocate(call.x.rows(), call.x.columns());
  if (y.empty()) return y;
  const RmsNormShape shape = shape_of(call);
  const LaunchPlan plan = plan_rms_norm(machine.limits(), shape);
  require_fits(plan);
  const std::unique_ptr<Staging> staging = machine.stage();
  const RmsNormArguments arguments = {
      .x = staging->in(call.x),
      .y = staging->out(y),
      .x_stride = call.x.stride(),
      .y_stride = y.stride(),
      .groups = static_cast<std::uint32_t>(call.x.columns() / shape.group),
      .group = static_cast<std::uint32_t>(shape.group),
      .count = shape.count,
      .weight = stored_vector(*staging, call.weight),
      .epsilon = static_cast<float>(call.epsilon),
      .use = use_of(call.form),
      .bfloat16 = ops.arithmetic().bfloat16(),
  };
  launchers.rms_norm(plan, arguments, staging->stream());
  staging->finish();
  return y;
}

}  // namespace

void add_norm_kernels(Registry& registry, Machine& machine, const NormLaunchers& launchers) {
  registry.add(Kernel<RmsNormCall>{
      .name = "cuda.fused",
      .about = "squares, root and weight in one pass over a row in shared memory",
      .device = Device::cuda,
      .takes =
          [&machine](const Arithmetic& arithmetic, const RmsNormCall& call) {
            const std::size_t group = group_of(call);
            return machine.unavailable().empty() && arithmetic.storage() == Real::f32 &&
                   is_stored_vector(call.weight) && group != 0 && call.x.columns() % group == 0 &&
                   plan_rms_norm(machine.limits(), shape_of(call)).fits;
          },
      .run = [&machine, launchers](
                 Ops& ops, const RmsNormCall& call) { return run_rms_norm(ops, call, machine, launchers); },
      .unavailable = [&machine] { return machine.unavailable(); }});
}

}  // namespace assay::cuda
