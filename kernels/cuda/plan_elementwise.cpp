// Launches of kernels that touch each element once, and of quantize, which looks at a block twice.

#include <algorithm>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/glue.h"
#include "kernels/cuda/plan_words.h"
#include "kernels/cuda/quantize.h"

namespace assay::cuda {
namespace {

constexpr unsigned kThreads = 256, kRegisters = 32;
constexpr std::size_t kMostScaledByAWarp = 1024;  // elements under one scale: 32 a thread

LaunchPlan plan_elements(const DeviceLimits& limits, const char* kernel, const ElementwiseShape& shape) {
  LaunchChoice choice = {.kernel = kernel, .threads = kThreads, .registers = kRegisters};
  choice.variant = "a thread an element";
  choice.grid = {static_cast<unsigned>(blocks_for(shape.columns, kThreads)),
                 static_cast<unsigned>(std::min<std::size_t>(shape.rows, kMostGridRows)), 1};
  choice.why = said("{} rows of {}", shape.rows, shape.columns);
  return checked_plan(limits, std::move(choice));
}

}  // namespace

Edges element_edges(std::string_view columns) {
  return {{.of = columns, .from = kThreads + 1}};
}
Edges quantize_edges() {
  return {{.of = "n", .every = 32}, {.of = "n", .from = kMostScaledByAWarp + 1}};
}

LaunchPlan plan_rope(const DeviceLimits& limits, const ElementwiseShape& pairs) {
  return plan_elements(limits, "rope", pairs);
}
LaunchPlan plan_activation(const DeviceLimits& limits, const ElementwiseShape& shape) {
  return plan_elements(limits, "activation", shape);
}
LaunchPlan plan_convert(const DeviceLimits& limits, const ElementwiseShape& shape) {
  return plan_elements(limits, "convert", shape);
}
LaunchPlan plan_epilogue(const DeviceLimits& limits, const ElementwiseShape& shape) {
  return plan_elements(limits, "epilogue", shape);
}
LaunchPlan plan_dequantize(const DeviceLimits& limits, const ElementwiseShape& shape) {
  return plan_elements(limits, "dequantize", shape);
}

LaunchPlan plan_glue(const DeviceLimits& limits, std::size_t rows, std::size_t columns) {
  return plan_elements(limits, "glue", {.rows = rows, .columns = columns});
}

LaunchPlan plan_quantize(const DeviceLimits& limits, const QuantizeShape& shape) {
  const bool warp = shape.block_elements <= kMostScaledByAWarp;
  LaunchChoice choice = {.kernel = "quantize", .registers = 40};
  choice.team = warp ? RowTeam::warp : RowTeam::block;
  choice.variant = warp ? "a warp a scale" : "a block a scale";
  choice.threads = warp ? 128 : kThreads;
  choice.grid.x = static_cast<unsigned>(warp ? blocks_for(shape.blocks, 4) : shape.blocks);
  choice.shared_bytes = warp ? 0 : 128;
  choice.why = said("{} scales of {} elements each", shape.blocks, shape.block_elements);
  return checked_plan(limits, std::move(choice));
}

}  // namespace assay::cuda
