// linear as kernels of the registry.
#include "kernels/cuda/gemm_operands.h"
#include "kernels/registry.h"

namespace assay::cuda {
namespace {

DeviceRows rows_of(Staging& staging, const Matrix& x) {
  return {staging.in(x), x.rows(), x.columns(), x.stride(), nullptr};
}

Matrix run_gemm(Ops& ops, const LinearCall& call, Machine& machine, const GemmLaunchers& launchers,
                TensorUnit unit) {
  Matrix y = ops.allocate(call.x.rows(), call.weight.outputs());
  if (y.empty()) return y;
  const Product product = product_of(call.weight, ops.arithmetic()).value();
  const GemmShape& shape = product.shape;
  const std::size_t rows[] = {call.x.rows()};
  const GemmPlan plan = plan_gemm(unit, machine.limits(), shape, rows);
  require_fits(plan.launch);
  Operations operations(machine, launchers);
  const DeviceX x = operations.for_gemm(rows_of(operations.staging(), call.x), shape.math);
  const DeviceW w = operations.weight(call.weight, product, call.bias, ops.arithmetic());
  GemmArgs args = gemm_args(x, w, shape, plan);
  args.rows = static_cast<std::int32_t>(call.x.rows());
  args.weights = operations.upload(std::vector<GemmWeight>{w.weight});
  args.y = operations.staging().out(y);
  args.y_pitch = static_cast<std::int64_t>(y.stride());
  args.finish = finish_of(shape.math, ops.arithmetic(), call.rounding);
  launch_gemm(unit, launchers, plan, shape, args, operations.stream());
  operations.finish();
  return y;
}

Matrix run_gemv(Ops& ops, const LinearCall& call, Machine& machine, const GemmLaunchers& launchers) {
  Matrix y = ops.allocate(call.x.rows(), call.weight.outputs());
  if (y.empty()) return y;
  const Product product = product_of(call.weight, ops.arithmetic()).value();
  const GemmMath math = product.shape.math;
  const GemvPlan plan =
      plan_gemv(machine.limits(), product.shape.codes, call.x.rows(), call.weight.rows, call.weight.columns);
  require_fits(plan.launch);
  Operations operations(machine, launchers);
  const DeviceX x = operations.for_gemv(rows_of(operations.staging(), call.x), math);
  const DeviceW w = operations.weight(call.weight, product, call.bias, ops.arithmetic());
  const bool sums = plan.splits > 1;
  const GemvArgs args = {
      .tokens = static_cast<std::int32_t>(call.x.rows()),
      .outputs = static_cast<std::int32_t>(call.weight.rows),
      .inputs = static_cast<std::int32_t>(call.weight.columns),
      .x = x.data,
      .x_pitch = x.pitch,
      .x_scales = x.scales,
      .weight = w.weight,
      .w_pitch = w.pitch,
      .block_rows = w.block_rows,
      .block_columns = w.block_columns,
      .scale_columns = w.scale_columns,
      .first_row = w.first_row,
      .round_weight = math == GemmMath::bf16,
      .split = static_cast<std::int32_t>(plan.split),
      .splits = static_cast<std::int32_t>(plan.splits),
      .parts = sums ? operations.scratch<float>(plan.splits * call.x.rows() * call.weight.rows) : nullptr,
      .y = operations.staging().out(y),
      .y_pitch = static_cast<std::int64_t>(y.stride()),
      .finish = finish_of(math, ops.arithmetic(), call.rounding),
  };
  launchers.gemv(plan, product.shape.codes, args, operations.stream());
  operations.finish();
  return y;
}

Kernel<LinearCall> gemm_kernel(const GemmKind& kind, Machine& machine, const GemmLaunchers& launchers) {
  return {
      .name = "cuda." + kind.name,
      .about = kind.about,
      .device = Device::cuda,
      .takes =
          [&machine, kind](const Arithmetic& arithmetic, const LinearCall& call) {
            const std::size_t rows[] = {call.x.rows()};
            const auto product = product_of(call.weight, arithmetic);
            return machine.unavailable().empty() && product &&
                   kind.computes(*product, machine.limits(), rows);
          },
      .run = [&machine, launchers, unit = kind.unit](
                 Ops& ops, const LinearCall& call) { return run_gemm(ops, call, machine, launchers, unit); },
      .accumulator_roundoff = kind.roundoff,
      .unavailable = [&machine] { return machine.unavailable(); }};
}

Kernel<LinearCall> gemv_kernel(Machine& machine, const GemmLaunchers& launchers) {
  return {.name = "cuda.gemv",
          .about = "at most 8 tokens: every byte of W read once",
          .device = Device::cuda,
          .takes =
              [&machine](const Arithmetic& arithmetic, const LinearCall& call) {
                return machine.unavailable().empty() && call.x.rows() <= kMostTokens &&
                       product_of(call.weight, arithmetic).has_value();
              },
          .run = [&machine, launchers](
                     Ops& ops, const LinearCall& call) { return run_gemv(ops, call, machine, launchers); },
          .unavailable = [&machine] { return machine.unavailable(); }};
}

}  // namespace

void add_linear_kernels(Registry& registry, Machine& machine, const GemmLaunchers& launchers) {
  registry.add(gemv_kernel(machine, launchers));
  for (const GemmKind& kind : gemm_kinds()) registry.add(gemm_kernel(kind, machine, launchers));
}

}  // namespace assay::cuda
