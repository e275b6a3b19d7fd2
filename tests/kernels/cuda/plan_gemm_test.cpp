// Plans of matrix products on every architecture: within its limits, over real shapes, and as deep as fits.
#include <gtest/gtest.h>

#include <array>

#include "kernels/cuda/gemm_product.h"

namespace assay::cuda {
namespace {

struct Shape {
  std::size_t m, k, n;
};
// Ragged, single, and DeepSeek-V3's, Llama-3's and Qwen3's.
constexpr std::array<Shape, 10> kShapes = {{{1, 1, 1},
                                            {3, 7, 5},
                                            {17, 129, 67},
                                            {1, 7168, 2112},
                                            {128, 7168, 4096},
                                            {4096, 16384, 7168},
                                            {4096, 1536, 24576},
                                            {8192, 4096, 14336},
                                            {1, 4096, 128256},
                                            {100'000, 1024, 151'936}}};

std::vector<GemmShape> maths_of(const Shape& s) {
  std::vector<GemmShape> shapes;
  for (const std::size_t promotion : {32u, 64u, 128u}) {
    for (const GemmMath math : {GemmMath::fp8, GemmMath::fp8_half})
      shapes.push_back({math, Codes::e4m3, s.n, s.k, promotion});
  }
  shapes.push_back({GemmMath::int8, Codes::s8, s.n, s.k, 128});
  for (const GemmMath math : {GemmMath::exact, GemmMath::bf16}) {
    for (const Codes codes : {Codes::bf16, Codes::f16, Codes::e4m3, Codes::s8})
      shapes.push_back({math, codes, s.n, s.k, 128});
  }
  return shapes;
}

TEST(PlanGemm, FitsEveryArchitecture) {
  std::size_t planned = 0;
  for (const DeviceLimits& limits : all_device_limits()) {
    for (const Shape& s : kShapes) {
      for (const GemmShape& shape : maths_of(s)) {
        const std::size_t rows[] = {s.m, 0, 1, s.m / 2};
        for (const TensorUnit unit :
             {TensorUnit::mma, TensorUnit::mma_half, TensorUnit::wgmma, TensorUnit::wgmma_tma}) {
          const GemmPlan plan = plan_gemm(unit, limits, shape, rows);
          if (!plan.launch.fits) {
            EXPECT_TRUE(unit == TensorUnit::wgmma || unit == TensorUnit::wgmma_tma ||
                        (shape.math == GemmMath::fp8 && unit == TensorUnit::mma && limits.sm < 89))
                << describe(plan.launch);
            continue;
          }
          ++planned;
          EXPECT_EQ(broken_limit(limits, plan.launch), "");
          EXPECT_LE(plan.launch.shared_bytes, limits.shared_per_block) << describe(plan.launch);
          EXPECT_GE(plan.launch.stages, unit == TensorUnit::wgmma ? 3 : 2) << describe(plan.launch);
          // Every row and every output lies in a tile.
          std::size_t tiles = 0;
          for (const std::size_t r : rows) tiles += blocks_for(r, plan.tile_rows);
          EXPECT_EQ(plan.row_tiles, tiles);
          EXPECT_EQ(plan.fed, unit == TensorUnit::wgmma_tma);
          EXPECT_GE(plan.launch.grid.x, plan.row_tiles * blocks_for(shape.outputs, 128));
        }
      }
    }
  }
  EXPECT_GT(planned, 500u);
}

TEST(PlanGemm, GemvCoversEveryInputOnce) {
  for (const DeviceLimits& limits : all_device_limits()) {
    for (const Shape& s : kShapes) {
      for (const Codes codes : {Codes::f32, Codes::bf16, Codes::f16, Codes::e4m3, Codes::s8}) {
        for (std::size_t tokens = 1; tokens <= kMostTokens; ++tokens) {
          const GemvPlan plan = plan_gemv(limits, codes, tokens, s.n, s.k);
          EXPECT_TRUE(plan.launch.fits) << plan.launch.why;
          EXPECT_GE(plan.split * plan.splits, s.k);
          EXPECT_LT(plan.split * (plan.splits - 1), s.k);
          EXPECT_EQ(plan.launch.grid.y, plan.splits);
          // The order of a sum is the same for any number of tokens: else batches would change it.
          EXPECT_EQ(plan.split, plan_gemv(limits, codes, 1, s.n, s.k).split);
        }
      }
    }
  }
}

// The mistake that is made of sm_80's and sm_89's limits.
TEST(PlanGemm, AdaGetsFewerStagesThanAmpere) {
  const std::size_t rows[] = {4096};
  const GemmShape shape = {GemmMath::bf16, Codes::bf16, 4096, 4096, 128};
  const GemmPlan ampere = plan_gemm_mma(*limits_of(80), shape, rows),
                 ada = plan_gemm_mma(*limits_of(89), shape, rows);
  EXPECT_EQ(ampere.size, GemmTileSize::large);
  EXPECT_EQ(ada.size, GemmTileSize::large);
  EXPECT_EQ(ampere.launch.stages, 4);
  EXPECT_EQ(ada.launch.stages, 3);
  EXPECT_EQ(ada.launch.shared_bytes, 3u * 32'768);
}

TEST(PlanGemm, LargeTilesOnlyWhereTheyOccupyTheDevice) {
  const GemmShape shape = {GemmMath::fp8, Codes::e4m3, 4096, 7168, 128};
  const std::size_t few[] = {1}, many[] = {4096};
  for (const bool fed : {false, true}) {
    EXPECT_EQ(plan_gemm_wgmma(*limits_of(90), shape, few, fed).size, GemmTileSize::small);
    EXPECT_EQ(plan_gemm_wgmma(*limits_of(90), shape, many, fed).size, GemmTileSize::large);
    EXPECT_EQ(plan_gemm_wgmma(*limits_of(90), shape, many, fed).launch.stages, 6);
  }
}

// A warpgroup more, and behind the tiles of a stage two barriers and a scale for each row, half and unit.
TEST(PlanGemm, WhatTheCopyEngineFeedsHasRoomForBarriersAndScales) {
  const std::size_t many[] = {4096};
  const auto plan = [&](GemmMath math, Codes codes, std::size_t promotion) {
    return plan_gemm_wgmma(*limits_of(90), {math, codes, 4096, 7168, promotion}, many, true).launch;
  };
  EXPECT_EQ(plan(GemmMath::fp8, Codes::e4m3, 128).shared_bytes, 6u * (32'768 + 1024 + 16));
  EXPECT_EQ(plan(GemmMath::fp8, Codes::e4m3, 64).shared_bytes, 6u * (32'768 + 2048 + 16));
  EXPECT_EQ(plan(GemmMath::bf16, Codes::bf16, 128).shared_bytes, 6u * (32'768 + 16));
  EXPECT_EQ(plan(GemmMath::bf16, Codes::bf16, 128).block.x, 384u);
}

// mma.sync of FP8 is made of float16 products from sm_90 on: 128 sums a thread would spill.
TEST(PlanGemm, LargeTilesOfFp8AreAdas) {
  const GemmShape shape = {GemmMath::fp8, Codes::e4m3, 4096, 7168, 128};
  const std::size_t many[] = {8192};
  for (const DeviceLimits& limits : all_device_limits()) {
    if (limits.sm < 89) continue;
    EXPECT_EQ(plan_gemm_mma(limits, shape, many).size,
              limits.sm == 89 ? GemmTileSize::large : GemmTileSize::small)
        << limits.sm;
  }
}

}  // namespace
}  // namespace assay::cuda
