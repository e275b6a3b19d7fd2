// linear as kernels of the registry.
#include <algorithm>
#include <optional>
#include <span>

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

// Products of one x by weights of one kind, whose number of outputs alone may differ.
class GemvRun {
 public:
  GemvRun(Ops& ops, std::span<const LinearCall> calls, Machine& machine, const GemmLaunchers& launchers)
      : arithmetic_(ops.arithmetic()),
        product_(product_of(calls[0].weight, arithmetic_).value()),
        tokens_(calls[0].x.rows()),
        operations_(machine, launchers) {
    std::vector<std::size_t> outputs;
    for (const LinearCall& call : calls) {
      made_.push_back(ops.allocate(tokens_, call.weight.outputs()));
      outputs.push_back(call.weight.rows);
    }
    plan_ = plan_gemv(machine.limits(), product_.shape.codes, tokens_, outputs, calls[0].weight.columns);
    require_fits(plan_.launch);
  }

  std::vector<Matrix> run(std::span<const LinearCall> calls) {
    const GemmMath math = product_.shape.math;
    const DeviceX x = operations_.for_gemv(rows_of(operations_.staging(), calls[0].x), math);
    std::uint32_t* arrived = plan_.splits > 1 ? operations_.staging().counters(plan_.warps()) : nullptr;
    GemvProducts products;
    std::size_t blocks = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      products.first_block[i] = static_cast<std::uint32_t>(blocks);
      products.of[i] = arguments(calls[i], made_[i], x);
      products.of[i].arrived = arrived;
      blocks += gemv_blocks(calls[i].weight.rows);
    }
    products.count = static_cast<std::uint32_t>(calls.size());
    operations_.launchers().gemv(plan_, product_.shape.codes, products, operations_.stream());
    operations_.finish();
    return std::move(made_);
  }

 private:
  GemvArgs arguments(const LinearCall& call, const Matrix& y, const DeviceX& x) {
    const DeviceW w = operations_.weight(call.weight, product_, call.bias, arithmetic_);
    return {.tokens = static_cast<std::int32_t>(tokens_),
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
            .round_weight = product_.shape.math == GemmMath::bf16,
            .split = static_cast<std::int32_t>(plan_.split),
            .splits = static_cast<std::int32_t>(plan_.splits),
            .parts = plan_.splits > 1 ? operations_.scratch<float>(plan_.splits * tokens_ * call.weight.rows)
                                      : nullptr,
            .y = operations_.staging().out(y),
            .y_pitch = static_cast<std::int64_t>(y.stride()),
            .finish = finish_of(product_.shape.math, arithmetic_, call.rounding)};
  }

  Arithmetic arithmetic_;
  Product product_;
  std::size_t tokens_;
  Operations operations_;
  std::vector<Matrix> made_;
  GemvPlan plan_;
};

Matrix run_gemv(Ops& ops, const LinearCall& call, Machine& machine, const GemmLaunchers& launchers) {
  if (call.x.rows() == 0 || call.weight.outputs() == 0)
    return ops.allocate(call.x.rows(), call.weight.outputs());
  const std::span<const LinearCall> one(&call, 1);
  return std::move(GemvRun(ops, one, machine, launchers).run(one)[0]);
}

// One launch where all are of one kind, as q, k and v are, gate and up.
bool goes_together(std::span<const LinearCall> calls, const Arithmetic& arithmetic) {
  if (calls.size() > GemvProducts::kMost || calls[0].x.empty()) return false;
  const std::optional<Product> first = product_of(calls[0].weight, arithmetic);
  return first && std::all_of(calls.begin(), calls.end(), [&](const LinearCall& call) {
           const std::optional<Product> product = product_of(call.weight, arithmetic);
           return product && product->shape.math == first->shape.math &&
                  product->shape.codes == first->shape.codes && product->packed == first->packed &&
                  call.weight.columns == calls[0].weight.columns && call.weight.outputs() != 0;
         });
}
std::vector<Matrix> run_gemv_together(Ops& ops, std::span<const LinearCall> calls, Machine& machine,
                                      const GemmLaunchers& launchers) {
  if (goes_together(calls, ops.arithmetic())) return GemvRun(ops, calls, machine, launchers).run(calls);
  std::vector<Matrix> made;
  for (const LinearCall& call : calls) made.push_back(run_gemv(ops, call, machine, launchers));
  return made;
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
  Kernel<LinearCall> kernel = cuda_kernel<LinearCall>(
      machine, "cuda.gemv", "at most 8 tokens: every byte of W read once", gemv_edges(), gemv_plans,
      [launchers](Machine& m, Ops& ops, const LinearCall& call) {
        return run_gemv(ops, call, m, launchers);
      });
  kernel.run_together = [&machine, launchers](Ops& ops, std::span<const LinearCall> calls) {
    const PlansWithoutWords none;
    return run_gemv_together(ops, calls, machine, launchers);
  };
  registry.add(std::move(kernel));
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
