// Which tile a product takes, and how deep its pipeline is.
//
// A large tile (128 × 128) reads each row of x and W half as often as a small one (64 × 64). It is worth it
// as soon as there are enough large tiles to occupy the device: until then more, smaller tiles finish sooner.
// Weight-only products of f32 arithmetic hold x in three planes, so that only small tiles leave room for a
// pipeline.
//
// The pipeline gets as many stages as fit the shared memory that a block may have, four at most: on sm_89,
// 101,376 bytes, large tiles go with three, where sm_80's 166,912 have room for four. The result is the same
// bits either way, since a sum's order depends on none of it.

#include <algorithm>
#include <array>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/plan_words.h"

namespace assay::cuda {
namespace {

// How deep a pipeline may be. Stages that threads fill themselves need one that the tensor cores still read.
struct Depth {
  int fewest, most;
};
constexpr int kStages = 4;
constexpr Depth kMmaDepth = {2, kStages}, kWgmmaDepth = {3, 6}, kFedDepth = {2, 6};

// What a tile is made of; the kernels' templates say the same, and the launchers hold the two together.
struct Tile {
  GemmTileSize size;
  std::size_t rows, outputs;
  unsigned threads, registers;
  bool fed = false;  // by the copy engine
};
constexpr Tile kLarge = {GemmTileSize::large, 128, 128, 256, 255};
constexpr Tile kSmall = {GemmTileSize::small, 64, 64, 128, 176};
constexpr Tile kTwoWarpgroups = {GemmTileSize::large, 128, 128, 256, 255};
constexpr Tile kOneWarpgroup = {GemmTileSize::small, 64, 128, 128, 255};
// And one more that brings the tiles. 168: what a thread begins with, before registers change hands.
constexpr Tile kTwoFedWarpgroups = {GemmTileSize::large, 128, 128, 384, 168, true};
constexpr Tile kOneFedWarpgroup = {GemmTileSize::small, 64, 128, 256, 255, true};

std::size_t planes(GemmMath math) {
  return math == GemmMath::exact ? 3 : 1;
}
std::size_t x_bytes(GemmMath math) {
  return quantizes_x(math) ? 1 : 2;
}
// Columns of a stage: 128 bytes of x.
std::size_t depth(GemmMath math) {
  return 128 / x_bytes(math);
}

// Behind the tiles of a stage that is fed: two barriers, and a scale for each row, half of the outputs and unit.
std::size_t fed_bytes(const Tile& tile, const GemmShape& shape) {
  if (!tile.fed) return 0;
  const std::size_t units = shape.promotion == 128 ? 1 : 2;
  return 2 * sizeof(std::uint64_t) +
         (shape.math == GemmMath::fp8 ? units * 2 * tile.rows * sizeof(float) : 0);
}

std::size_t stage_bytes(const Tile& tile, const GemmShape& shape) {
  return fed_bytes(tile, shape) + planes(shape.math) * tile.rows * 128 +
         tile.outputs * depth(shape.math) * static_cast<std::size_t>(bytes_of(shape.codes));
}

std::size_t tiles_of_rows(const Tile& tile, std::span<const std::size_t> group_rows) {
  std::size_t tiles = 0;
  for (const std::size_t rows : group_rows) tiles += blocks_for(rows, tile.rows);
  return tiles;
}

GemmPlan plan_with(const DeviceLimits& limits, const GemmShape& shape,
                   std::span<const std::size_t> group_rows, const Tile& tile, std::string_view kernel,
                   const Depth& deep) {
  const std::size_t stage = stage_bytes(tile, shape);
  const int fitting = static_cast<int>(limits.shared_per_block / stage);
  const int stages = std::clamp(fitting, deep.fewest, deep.most);
  GemmPlan plan;
  plan.size = tile.size;
  plan.fed = tile.fed;
  plan.tile_rows = tile.rows;
  plan.row_tiles = tiles_of_rows(tile, group_rows);
  const std::size_t blocks = plan.row_tiles * blocks_for(shape.outputs, tile.outputs);
  LaunchChoice choice = {.kernel = said("{} {} {}", kernel, name(shape.math), name(shape.codes)),
                         .variant = said("{}×{}×{}", tile.rows, tile.outputs, depth(shape.math)),
                         .threads = tile.threads,
                         .shared_bytes = stage * static_cast<std::size_t>(stages),
                         .stages = stages,
                         .registers = tile.registers};
  choice.grid.x = static_cast<unsigned>(std::min<std::size_t>(blocks, kMostGridColumns));
  choice.why = said("{} tiles for {} SMs; {} stages of {} bytes in {}", blocks, limits.sm_count, stages,
                    stage, limits.shared_per_block);
  plan.launch = checked_plan(limits, std::move(choice));
  if (blocks > kMostGridColumns) {
    plan.launch.fits = false;
    plan.launch.why = said("{} tiles are more than a grid has", blocks);
  }
  return plan;
}

GemmPlan unfit(std::string_view kernel, std::string why) {
  GemmPlan plan;
  plan.launch.kernel = kernel;
  plan.launch.fits = false;
  plan.launch.why = std::move(why);
  return plan;
}

// 128 sums a thread leave no registers to sm_90's mma.sync of FP8, which is made of conversions to float16.
bool has_large_tile(const DeviceLimits& limits, const GemmShape& shape) {
  if (shape.math == GemmMath::fp8) return limits.sm == 89;
  return quantizes_x(shape.math) || (shape.math == GemmMath::bf16 && shape.codes == Codes::bf16);
}

bool occupies(const DeviceLimits& limits, const GemmPlan& plan) {
  return plan.launch.fits && plan.launch.grid.x >= limits.sm_count;
}

// A warp's step is 32 chunks of 16 bytes of four rows. A split of four steps keeps enough of memory under
// way; it depends on the codes alone.
std::size_t gemv_split(Codes codes) {
  return 4 * (std::size_t{32} * 16 / static_cast<std::size_t>(bytes_of(codes)));
}

LaunchPlan plan_simple(const DeviceLimits& limits, std::string_view kernel, Extent3 grid,
                       std::size_t shared_bytes = 0) {
  return checked_plan(limits, {.kernel = std::string(kernel),
                               .variant = "128 threads",
                               .grid = grid,
                               .threads = kPrepareThreads,
                               .shared_bytes = shared_bytes});
}

unsigned capped(std::size_t blocks, unsigned most) {
  return static_cast<unsigned>(std::min<std::size_t>(blocks, most));
}

}  // namespace

std::string_view name(Codes codes) {
  constexpr std::array<std::string_view, 5> kNames = {"f32", "bf16", "f16", "e4m3", "s8"};
  return kNames.at(static_cast<std::size_t>(codes));
}
std::string_view name(GemmMath math) {
  constexpr std::array<std::string_view, 5> kNames = {"fp8", "fp8 as f16", "int8", "f32", "bf16"};
  return kNames.at(static_cast<std::size_t>(math));
}

GemmPlan plan_gemm_mma(const DeviceLimits& limits, const GemmShape& shape,
                       std::span<const std::size_t> group_rows) {
  if (shape.math == GemmMath::fp8 && limits.sm < 89)
    return unfit("mma", said("sm_{} has no tensor cores for FP8", limits.sm));
  if (has_large_tile(limits, shape)) {
    GemmPlan large = plan_with(limits, shape, group_rows, kLarge, "mma", kMmaDepth);
    if (occupies(limits, large)) return large;
  }
  return plan_with(limits, shape, group_rows, kSmall, "mma", kMmaDepth);
}

GemmPlan plan_gemm_wgmma(const DeviceLimits& limits, const GemmShape& shape,
                         std::span<const std::size_t> group_rows, bool fed) {
  const bool fp8 = shape.math == GemmMath::fp8 && shape.promotion >= 64;
  const bool bf16 = shape.math == GemmMath::bf16 && shape.codes == Codes::bf16;
  if (limits.sm != 90) return unfit("wgmma", said("sm_{} has no wgmma", limits.sm));
  if (!fp8 && !bf16) return unfit("wgmma", "only FP8 in blocks of 64 or 128, and BF16");
  const std::string_view kernel = fed ? "wgmma_tma" : "wgmma";
  const Depth& deep = fed ? kFedDepth : kWgmmaDepth;
  GemmPlan large =
      plan_with(limits, shape, group_rows, fed ? kTwoFedWarpgroups : kTwoWarpgroups, kernel, deep);
  if (occupies(limits, large)) return large;
  return plan_with(limits, shape, group_rows, fed ? kOneFedWarpgroup : kOneWarpgroup, kernel, deep);
}

Edges gemm_edges() {
  const std::size_t ring = kStages * depth(GemmMath::fp8);  // the longest there is, in columns of x
  return {{.of = "m", .from = kSmall.rows + 1},
          {.of = "m", .from = kLarge.rows + 1},
          {.of = "n", .from = kSmall.outputs + 1},
          {.of = "n", .from = kLarge.outputs + 1},
          {.of = "k", .every = 16},  // a chunk of 16 bytes, in which the last columns may not be all
          {.of = "k", .from = depth(GemmMath::bf16) + 1},
          {.of = "k", .from = depth(GemmMath::fp8) + 1},
          {.of = "k", .from = ring + 1}};
}

Edges gemv_edges() {
  Edges edges = {{.of = "m", .from = 2},  // 1, 4 or 8 tokens by an instance of their own
                 {.of = "m", .from = 5},
                 {.of = "m", .from = kMostTokens},
                 {.of = "n", .every = 16},  // four rows for each of a block's warps
                 {.of = "k", .every = 16}};
  for (const Codes codes : {Codes::f32, Codes::bf16, Codes::e4m3})
    edges.push_back({.of = "k", .from = gemv_split(codes) + 1});
  return edges;
}

std::size_t gemv_blocks(std::size_t outputs) {
  return blocks_for(outputs, 16);
}

GemvPlan plan_gemv(const DeviceLimits& limits, Codes codes, std::size_t tokens, std::size_t outputs,
                   std::size_t inputs) {
  return plan_gemv(limits, codes, tokens, std::span(&outputs, 1), inputs);
}
GemvPlan plan_gemv(const DeviceLimits& limits, Codes codes, std::size_t tokens,
                   std::span<const std::size_t> outputs, std::size_t inputs) {
  GemvPlan plan;
  plan.split = gemv_split(codes);
  plan.splits = std::max<std::size_t>(1, blocks_for(inputs, plan.split));
  LaunchChoice choice = {.kernel = said("gemv {}", name(codes)),
                         .variant = tokens == 1   ? "1 token"
                                    : tokens <= 4 ? "4 tokens"
                                                  : "8 tokens",
                         .threads = 128,
                         .registers = 255,
                         .why = said("{} splits of {} inputs", plan.splits, plan.split)};
  std::size_t blocks = 0;
  for (const std::size_t count : outputs) blocks += gemv_blocks(count);
  choice.grid = {capped(blocks, kMostGridColumns), static_cast<unsigned>(plan.splits), 1};
  plan.launch = checked_plan(limits, std::move(choice));
  return plan;
}

LaunchPlan plan_rows(const DeviceLimits& limits, std::string_view kernel, std::size_t rows,
                     std::size_t shared_bytes) {
  return plan_simple(limits, kernel, {capped(rows, kMostGridColumns), 1, 1}, shared_bytes);
}

LaunchPlan plan_row_blocks(const DeviceLimits& limits, std::string_view kernel, std::size_t rows,
                           std::size_t columns) {
  return plan_simple(limits, kernel,
                     {capped(blocks_for(rows * blocks_for(columns, 128), 4), kMostGridColumns), 1, 1});
}

LaunchPlan plan_elements(const DeviceLimits& limits, std::string_view kernel, std::size_t rows,
                         std::size_t columns) {
  return plan_simple(
      limits, kernel,
      {capped(rows, kMostGridColumns), static_cast<unsigned>(blocks_for(columns, kPrepareThreads)), 1});
}

}  // namespace assay::cuda
