// Matrix products on the device: how they are planned, and what launches them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/gemm_args.h"
#include "kernels/cuda/gemm_prepare_args.h"
#include "kernels/cuda/gemv_args.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/moe_args.h"
#include "kernels/registry/edges.h"

namespace assay {
class Registry;
}

namespace assay::cuda {

class Machine;

// What W's elements are, once its rows are apart from its scales.
enum class Codes : std::uint8_t { f32, bf16, f16, e4m3, s8 };
std::string_view name(Codes codes);
constexpr int bytes_of(Codes codes) {
  return codes == Codes::f32 ? 4 : codes == Codes::bf16 || codes == Codes::f16 ? 2 : 1;
}

// How x and W are multiplied.
enum class GemmMath : std::uint8_t {
  fp8,       // both e4m3, scaled by blocks
  fp8_half,  // the same, both taken to float16 first
  int8,      // both s8, exact
  exact,     // x in three planes of bfloat16, W's codes as they are: f32 arithmetic
  bf16       // x bfloat16, W rounded to it: bf16 arithmetic
};
std::string_view name(GemmMath math);
constexpr bool quantizes_x(GemmMath math) {
  return math == GemmMath::fp8 || math == GemmMath::fp8_half || math == GemmMath::int8;
}

// A product, or the products of many groups of rows in one launch.
struct GemmShape {
  GemmMath math = GemmMath::bf16;
  Codes codes = Codes::bf16;
  std::size_t outputs = 1, inputs = 1;
  std::size_t promotion = 128;  // columns summed before they are scaled: 32, 64 or 128
};

// A block's tile of y.
enum class GemmTileSize : std::uint8_t { small, large };
struct GemmPlan {
  LaunchPlan launch;
  GemmTileSize size = GemmTileSize::small;
  std::size_t tile_rows = 64, row_tiles = 0;
  bool fed = false;  // by the copy engine: GemmArgs::maps
};
// `group_rows`: how many rows each group has. fits = false of fp8 before sm_89.
GemmPlan plan_gemm_mma(const DeviceLimits& limits, const GemmShape& shape,
                       std::span<const std::size_t> group_rows);
// fits = false on anything but sm_90, and of other maths than fp8 and bf16 of bf16. `fed`: of gemm_wgmma_tma.cuh.
GemmPlan plan_gemm_wgmma(const DeviceLimits& limits, const GemmShape& shape,
                         std::span<const std::size_t> group_rows, bool fed);

struct GemvPlan {
  LaunchPlan launch;
  std::size_t split = 0, splits = 1;  // inputs of a split
  std::size_t warps() const { return std::size_t{launch.grid.x} * (launch.block.x / 32); }  // of one split
};
// Where both go another way: tiles, stages, splits, and what a warp reads at once.
Edges gemm_edges();
Edges gemv_edges();
GemvPlan plan_gemv(const DeviceLimits& limits, Codes codes, std::size_t tokens, std::size_t outputs,
                   std::size_t inputs);
// Of several products of the same codes, tokens and inputs: their blocks one after the other, split as each by itself.
GemvPlan plan_gemv(const DeviceLimits& limits, Codes codes, std::size_t tokens,
                   std::span<const std::size_t> outputs, std::size_t inputs);
// Blocks of a product's outputs.
std::size_t gemv_blocks(std::size_t outputs);

// A thread block for so many rows, of so many threads; and for elements.
LaunchPlan plan_rows(const DeviceLimits& limits, std::string_view kernel, std::size_t rows,
                     std::size_t shared_bytes = 0);
LaunchPlan plan_row_blocks(const DeviceLimits& limits, std::string_view kernel, std::size_t rows,
                           std::size_t columns);
LaunchPlan plan_elements(const DeviceLimits& limits, std::string_view kernel, std::size_t rows,
                         std::size_t columns);

struct GemmLaunchers {
  void (*mma)(const GemmPlan&, const GemmShape&, const GemmArgs&, Stream);
  void (*wgmma)(const GemmPlan&, const GemmShape&, const GemmArgs&, Stream);
  void (*gemv)(const GemvPlan&, Codes, const GemvProducts&, Stream);
  void (*planes)(const LaunchPlan&, int planes, const PrepareArgs&, Stream);  // 1, 3; 0: float32
  void (*quantize_fp8)(const LaunchPlan&, bool dequantized, const PrepareArgs&, Stream);
  void (*quantize_int8)(const LaunchPlan&, const PrepareArgs&, Stream);
  void (*align_rows)(const LaunchPlan&, const RepackArgs&, Stream);
  void (*unpack_q8_0)(const LaunchPlan&, const RepackArgs&, Stream);
  void (*activation)(const LaunchPlan&, const ActivationArguments&, Stream);
  void (*combine)(const LaunchPlan&, const CombineArgs&, Stream);
};
GemmLaunchers device_gemm_launchers();  // gemm.cu

// First choice for few tokens, and so to be added before libraries' kernels.
void add_gemv_kernel(Registry& registry, Machine& machine, const GemmLaunchers& launchers);
void add_linear_kernels(Registry& registry, Machine& machine, const GemmLaunchers& launchers);
void add_moe_kernels(Registry& registry, Machine& machine, const GemmLaunchers& launchers);

}  // namespace assay::cuda
