// linear as kernels of the registry.
#include "kernels/cuda/gemm_operands.h"
#include "kernels/cuda/registration.h"

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
  args.maps = operations.maps(args, {w.weight}, shape, plan);
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
      .arrived = sums ? operations.staging().counters(plan.warps()) : nullptr,
      .y = operations.staging().out(y),
      .y_pitch = static_cast<std::int64_t>(y.stride()),
      .finish = finish_of(math, ops.arithmetic(), call.rounding),
  };
  launchers.gemv(plan, product.shape.codes, args, operations.stream());
  operations.finish();
  return y;
}

std::vector<LaunchPlan> gemm_plans(const GemmKind& kind, const DeviceLimits& limits,
                                   const Arithmetic& arithmetic, const LinearCall& call) {
  const std::size_t rows[] = {call.x.rows()};
  const auto product = product_of(call.weight, arithmetic);
  if (!product || !kind.computes(*product, limits, rows)) return {};
  return {plan_row_blocks(limits, "prepare x", call.x.rows(), call.x.columns()),
          plan_gemm(kind.unit, limits, product->shape, rows).launch};
}

std::vector<LaunchPlan> gemv_plans(const DeviceLimits& limits, const Arithmetic& arithmetic,
                                   const LinearCall& call) {
  const auto product = product_of(call.weight, arithmetic);
  if (!product || call.x.rows() > kMostTokens) return {};
  const GemvPlan plan =
      plan_gemv(limits, product->shape.codes, call.x.rows(), call.weight.rows, call.weight.columns);
  return {plan_row_blocks(limits, "prepare x", call.x.rows(), call.x.columns()), plan.launch};
}

}  // namespace

void add_gemv_kernel(Registry& registry, Machine& machine, const GemmLaunchers& launchers) {
  registry.add(cuda_kernel<LinearCall>(machine, "cuda.gemv", "at most 8 tokens: every byte of W read once",
                                       gemv_edges(), gemv_plans,
                                       [launchers](Machine& m, Ops& ops, const LinearCall& call) {
                                         return run_gemv(ops, call, m, launchers);
                                       }));
}

void add_linear_kernels(Registry& registry, Machine& machine, const GemmLaunchers& launchers) {
  for (const GemmKind& kind : gemm_kinds()) {
    Kernel<LinearCall> kernel = cuda_kernel<LinearCall>(
        machine, "cuda." + kind.name, kind.about, gemm_edges(),
        [kind](const DeviceLimits& limits, const Arithmetic& arithmetic, const LinearCall& call) {
          return gemm_plans(kind, limits, arithmetic, call);
        },
        [launchers, unit = kind.unit](Machine& m, Ops& ops, const LinearCall& call) {
          return run_gemm(ops, call, m, launchers, unit);
        });
    kernel.roundoffs = {.accumulator = kind.roundoff, .promoted = kind.promotion};
    registry.add(std::move(kernel));
  }
}

}  // namespace assay::cuda
