// What sm_90a's products have in common, however their tiles come to shared memory: gemm_wgmma.cuh by cp.async of all
// threads, gemm_wgmma_tma.cuh by the copy engine.
//
//   math        elements   a stage of K   sums on tensor cores over
//   Fp8Wgmma    e4m3       128            128 or 64 products, then scaled and added in float32
//   Bf16Wgmma   bfloat16   64             64 products, then added in float32
//
// A warpgroup computes 64 × 128; a stage is 128 bytes of each row of x and W.
//
// Fp8: tensor cores of sm_90 keep about 14 bits of a sum (DeepSeek-V3 technical report, §3.3.2: "limited to
// retaining around 14 bits"), whatever the type of D says.
#pragma once

#include "kernels/cuda/gemm_tile.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

struct Fp8Wgmma {
  using Element = e4m3;
  static constexpr bool kScaled = true;
};
struct Bf16Wgmma {
  using Element = bf16;
  static constexpr bool kScaled = false;
};

// kGroups warpgroups multiply; kSteps steps of 32 bytes are summed before they are scaled: 4 are a stage.
template <class Math, int kGroups, int kSteps>
struct WgmmaTile {
  using Element = typename Math::Element;
  static constexpr int kRows = 64 * kGroups, kOutputs = 128, kRowBytes = 128;
  static constexpr int kXStage = kRows * kRowBytes, kStage = kXStage + kOutputs * kRowBytes;
  static constexpr int kDepth = kRowBytes / static_cast<int>(sizeof(Element));
  static constexpr int kUnits = 4 / kSteps, kUnit = kDepth / kUnits;  // of a stage; columns of one
  static_assert(kUnits == 1 || kUnits == 2);

  const GemmArgs& args;
  const GemmTile tile;
  const int steps;
  WgmmaQueue queue;
  float sum[64] = {};
  // Scales of W: whether they change at output 64 of the tile at most, and then where those of both halves
  // are.
  bool by_halves = true;
  std::int64_t half_scales[2] = {};

  ASSAY_DEVICE WgmmaTile(const GemmArgs& a, unsigned block)
      : args(a), tile(find_tile(a, block, kRows, kOutputs)), steps((a.inputs + kDepth - 1) / kDepth) {
    if constexpr (Math::kScaled) {
      ASSAY_UNROLL
      for (int half = 0; half < 2; ++half) {
        const std::int32_t first = last_output(tile.output + half * 64);
        half_scales[half] = scale_row(args, first);
        by_halves =
            by_halves && half_scales[half] == scale_row(args, last_output(tile.output + half * 64 + 63));
      }
    }
  }

  ASSAY_DEVICE std::int32_t last_output(std::int32_t output) const {
    return output < args.outputs ? output : args.outputs - 1;
  }
  ASSAY_DEVICE int row_of(int half) const {
    return static_cast<int>(warp_id()) * 16 + half * 8 + static_cast<int>(lane_id()) / 4;
  }
  ASSAY_DEVICE std::int32_t output_of(int i) const {
    return tile.output + i / 4 * 8 + static_cast<int>(lane_id()) % 4 * 2 + i % 2;
  }

  // What the sums of a unit are multiplied by. Asked for before the unit's sums are waited for, so that they come
  // while tensor cores compute.
  struct UnitScales {
    float x[2] = {};  // of a thread's two rows
    float both[2][2] =
        {};  // x's times W's, by row and half of the outputs; where W's change at output 64 at most
    const float* w = nullptr;
  };
  ASSAY_DEVICE UnitScales scales_of(std::int32_t input) const {
    UnitScales scales;
    if constexpr (Math::kScaled) {
      const int column = args.x_scale_columns == 1 ? 0 : input / 128;
      scales.w = tile.weight.scales + scale_column(args, input);
      ASSAY_UNROLL
      for (int row = 0; row < 2; ++row) {
        const int in_tile = row_of(row) < tile.rows ? row_of(row) : 0;
        scales.x[row] =
            args.x_scales[static_cast<std::int64_t>(tile.row + in_tile) * args.x_scale_columns + column];
        if (!by_halves) continue;
        ASSAY_UNROLL
        for (int half = 0; half < 2; ++half)
          scales.both[row][half] = scales.x[row] * scales.w[half_scales[half]];
      }
    }
    return scales;
  }

  // Adds a unit's sums.
  ASSAY_DEVICE void promote(const float (&part)[64], const UnitScales& scales) {
    if constexpr (!Math::kScaled) {
      ASSAY_UNROLL
      for (int i = 0; i < 64; ++i) sum[i] += part[i];
    } else if (by_halves) {
      ASSAY_UNROLL
      for (int i = 0; i < 64; ++i) sum[i] = fmaf(part[i], scales.both[i / 2 % 2][i / 32], sum[i]);
    } else {
      promote_by_outputs(part, scales);
    }
  }
  ASSAY_DEVICE void promote_by_outputs(const float (&part)[64], const UnitScales& scales) {
    ASSAY_UNROLL
    for (int i = 0; i < 64; i += 4) {
      ASSAY_UNROLL
      for (int one = 0; one < 2; ++one) {
        const float w_scale = scales.w[scale_row(args, last_output(output_of(i + one)))];
        sum[i + one] = fmaf(part[i + one], scales.x[0] * w_scale, sum[i + one]);
        sum[i + 2 + one] = fmaf(part[i + 2 + one], scales.x[1] * w_scale, sum[i + 2 + one]);
      }
    }
  }

  // Begins unit `unit` of the stage whose tiles lie at `shared`.
  ASSAY_DEVICE void begin(const unsigned char* shared, int unit, float (&part)[64]) {
    const SharedOperand x = shared_operand(shared + static_cast<int>(warp_id()) / 4 * (64 * kRowBytes));
    const SharedOperand w = shared_operand(shared + kXStage);
    wgmma_fence(part);
    ASSAY_UNROLL
    for (int k = 0; k < kSteps; ++k)
      wgmma_m64n128<Element>(queue, part, x.at(unit * kSteps + k), w.at(unit * kSteps + k), k != 0);
    wgmma_commit(queue);
  }

  // The first input of a unit; of one behind the end, which is all zeros, the last.
  ASSAY_DEVICE std::int32_t input_of(int step, int unit) const {
    const std::int32_t input = (step * kUnits + unit) * kUnit;
    return input < args.inputs ? input : args.inputs - 1;
  }

  ASSAY_DEVICE void store() const {
    ASSAY_UNROLL
    for (int i = 0; i < 64; ++i) store_sum(args, tile, row_of(i / 2 % 2), output_of(i), sum[i]);
  }
};

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
