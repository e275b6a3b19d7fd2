// rms_norm, layer_norm and softmax as kernels of the registry.
#include "kernels/cuda/norm.h"
#include "kernels/cuda/registration.h"
#include "kernels/cuda/softmax.h"
#include "kernels/cuda/stored_argument.h"

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

std::size_t group_of(const WeightView& weight) {
  return weight.rows * weight.columns;
}
// Whether the kernels take a norm of groups as wide as this weight.
bool takes_norm(const Arithmetic& arithmetic, const Matrix& x, const WeightView& weight) {
  return arithmetic.storage() == Real::f32 && is_stored_vector(weight) && group_of(weight) != 0 &&
         x.columns() % group_of(weight) == 0;
}

NormShape shape_of(const Matrix& x, const WeightView& weight) {
  const std::size_t group = group_of(weight);
  return {.count = x.rows() * (x.columns() / group), .group = group};
}

std::vector<LaunchPlan> plans_of_norm(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                      const RmsNormCall& call) {
  if (!takes_norm(arithmetic, call.x, call.weight)) return {};
  return {plan_rms_norm(limits, shape_of(call.x, call.weight))};
}

std::vector<LaunchPlan> plans_of_layer_norm(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                            const LayerNormCall& call) {
  const bool bias_fits =
      !call.bias || (is_stored_vector(call.bias) && group_of(call.bias) == group_of(call.weight));
  if (!takes_norm(arithmetic, call.x, call.weight) || !bias_fits) return {};
  return {plan_layer_norm(limits, shape_of(call.x, call.weight))};
}

Matrix run_rms_norm(Machine& machine, Ops& ops, const RmsNormCall& call, const NormLaunchers& launchers) {
  Matrix y = ops.allocate(call.x.rows(), call.x.columns());
  if (y.empty()) return y;
  const NormShape shape = shape_of(call.x, call.weight);
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
  launchers.rms_norm(plan_rms_norm(machine.limits(), shape), arguments, staging->stream());
  staging->finish();
  return y;
}

Matrix run_layer_norm(Machine& machine, Ops& ops, const LayerNormCall& call, const NormLaunchers& launchers) {
  Matrix y = ops.allocate(call.x.rows(), call.x.columns());
  if (y.empty()) return y;
  const NormShape shape = shape_of(call.x, call.weight);
  const std::unique_ptr<Staging> staging = machine.stage();
  const LayerNormArguments arguments = {
      .x = staging->in(call.x),
      .y = staging->out(y),
      .x_stride = call.x.stride(),
      .y_stride = y.stride(),
      .groups = static_cast<std::uint32_t>(call.x.columns() / shape.group),
      .group = static_cast<std::uint32_t>(shape.group),
      .count = shape.count,
      .weight = stored_vector(*staging, call.weight),
      .bias = stored_vector(*staging, call.bias),
      .epsilon = static_cast<float>(call.epsilon),
      .bfloat16 = ops.arithmetic().bfloat16(),
  };
  launchers.layer_norm(plan_layer_norm(machine.limits(), shape), arguments, staging->stream());
  staging->finish();
  return y;
}

Matrix run_softmax(Machine& machine, Ops& ops, const SoftmaxCall& call, const SoftmaxLaunchers& launchers) {
  Matrix y = ops.allocate(call.x.rows(), call.x.columns());
  if (y.empty()) return y;
  const std::unique_ptr<Staging> staging = machine.stage();
  const SoftmaxArguments arguments = {
      .x = staging->in(call.x),
      .y = staging->out(y),
      .x_stride = call.x.stride(),
      .y_stride = y.stride(),
      .rows = y.rows(),
      .columns = static_cast<std::uint32_t>(y.columns()),
      .bfloat16 = ops.arithmetic().bfloat16(),
  };
  launchers.softmax(plan_softmax(machine.limits(), {.rows = y.rows(), .columns = y.columns()}), arguments,
                    staging->stream());
  staging->finish();
  return y;
}

}  // namespace

void add_norm_kernels(Registry& registry, Machine& machine, const NormLaunchers& launchers) {
  registry.add(cuda_kernel<RmsNormCall>(
      machine, "cuda.fused", "squares, root and weight in one pass over a row in shared memory", row_edges(),
      plans_of_norm, [launchers](Machine& m, Ops& ops, const RmsNormCall& call) {
        return run_rms_norm(m, ops, call, launchers);
      }));
  registry.add(cuda_kernel<LayerNormCall>(
      machine, "cuda.fused", "mean, variance about it, weight and bias over a row in shared memory",
      row_edges(), plans_of_layer_norm, [launchers](Machine& m, Ops& ops, const LayerNormCall& call) {
        return run_layer_norm(m, ops, call, launchers);
      }));
}

void add_softmax_kernels(Registry& registry, Machine& machine, const SoftmaxLaunchers& launchers) {
  registry.add(cuda_kernel<SoftmaxCall>(
      machine, "cuda.fused", "maximum, sum and quotient of a row in shared memory", row_edges(),
      [](const DeviceLimits& limits, const Arithmetic& arithmetic,
         const SoftmaxCall& call) -> std::vector<LaunchPlan> {
        if (arithmetic.storage() != Real::f32) return {};
        return {plan_softmax(limits, {.rows = call.x.rows(), .columns = call.x.columns()})};
      },
      [launchers](Machine& m, Ops& ops, const SoftmaxCall& call) {
        return run_softmax(m, ops, call, launchers);
      }));
}

}  // namespace assay::cuda
