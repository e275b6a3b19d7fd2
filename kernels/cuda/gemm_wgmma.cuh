// y = x · Wᵀ by sm_90a's wgmma: FP8 by blocks, and BF16.
//
//   math        elements   a stage of K   sums on tensor cores over
//   Fp8Wgmma    e4m3       128            128 or 64 products, then scaled and added in float32
//   Bf16Wgmma   bfloat16   64             64 products, then added in float32
//
// A warpgroup computes 64 × 128. Tiles of x and W go through a ring of stages in shared memory, filled by
// cp.async, two stages behind the one in use: the tensor cores may still be reading the last one when the
// barrier of the next is passed. While they sum one block of products in one set of registers, the threads
// scale and add the block before from another (DeepGEMM has two warpgroups take turns at that); of blocks of
// 64, the second while the first is added.
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

// kGroups warpgroups; kSteps steps of 32 bytes are summed before they are scaled: 4 are a stage.
template <class Math, int kGroups, int kSteps>
struct GemmWgmma {
  using Element = typename Math::Element;
  static constexpr int kRows = 64 * kGroups, kOutputs = 128, kThreads = 128 * kGroups, kRowBytes = 128;
  static constexpr int kXStage = kRows * kRowBytes, kStage = kXStage + kOutputs * kRowBytes;
  static constexpr int kDepth = kRowBytes / static_cast<int>(sizeof(Element));
  static constexpr int kUnits = 4 / kSteps, kUnit = kDepth / kUnits;  // of a stage; columns of one
  static_assert(kUnits == 1 || kUnits == 2);
  using Layout = SharedRows<kRowBytes, Swizzle128>;

  const GemmArgs& args;
  const GemmTile tile;
  const int steps;
  WgmmaQueue queue;
  // Places in the ring: of the stage in use, and of the one filled next. Counted, as a remainder by a number known
  // only at run time is a division.
  int in_use, filling = 0;
  float even[64] = {}, odd[64] = {};  // what tensor cores sum, in turns
  float sum[64] = {};
  // Scales of W: whether they change at output 64 of the tile at most, and then where those of both halves
  // are.
  bool by_halves = true;
  std::int64_t half_scales[2] = {};

  ASSAY_DEVICE GemmWgmma(const GemmArgs& a, unsigned block)
      : args(a),
        tile(find_tile(a, block, kRows, kOutputs)),
        steps((a.inputs + kDepth - 1) / kDepth),
        in_use(a.stages - 1) {
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

  ASSAY_DEVICE int after(int place) const { return place + 1 == args.stages ? 0 : place + 1; }
  ASSAY_DEVICE unsigned char* stage_at(int place) const {
    return shared_memory<unsigned char>(static_cast<unsigned>(place * kStage));
  }

  ASSAY_DEVICE void load(int step) {
    unsigned char* const shared = stage_at(filling);
    filling = after(filling);
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Element));
    const std::int64_t begin = static_cast<std::int64_t>(step) * kRowBytes, row_bytes = args.inputs * kBytes;
    copy_rows<kRows, kThreads, Layout>(shared, args.x + tile.row * args.x_pitch, args.x_pitch, tile.rows,
                                       row_bytes, begin);
    copy_rows<kOutputs, kThreads, Layout>(shared + kXStage, tile.weight.codes + tile.output * args.w_pitch,
                                          args.w_pitch, args.outputs - tile.output, row_bytes, begin);
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

  // Begins unit `unit` of a stage.
  ASSAY_DEVICE void begin(int unit, float (&part)[64]) {
    const unsigned char* const shared = stage_at(in_use);
    const SharedOperand x = shared_operand(shared + static_cast<int>(warp_id()) / 4 * (64 * kRowBytes));
    const SharedOperand w = shared_operand(shared + kXStage);
    wgmma_fence(part);
    ASSAY_UNROLL
    for (int k = 0; k < kSteps; ++k)
      wgmma_m64n128<Element>(queue, part, x.at(unit * kSteps + k), w.at(unit * kSteps + k), k != 0);
    wgmma_commit(queue);
  }

  // Stage `step` has come for all threads, and all have left stage step - 2, which is filled again.
  ASSAY_DEVICE void next_stage(int step) {
    if (args.stages == 3)
      cp_async_wait<0>();
    else if (args.stages == 4)
      cp_async_wait<1>();
    else if (args.stages == 5)
      cp_async_wait<2>();
    else
      cp_async_wait<3>();
    shared_to_wgmma();
    sync_block();
    in_use = after(in_use);
    if (step + args.stages - 2 < steps) load(step + args.stages - 2);
    cp_async_commit();
  }

  // The first input of a unit; of one behind the end, which is all zeros, the last.
  ASSAY_DEVICE std::int32_t input_of(int step, int unit) const {
    const std::int32_t input = (step * kUnits + unit) * kUnit;
    return input < args.inputs ? input : args.inputs - 1;
  }

  // A stage is a unit: begins it in `mine`, and meanwhile adds up the one before, which is in `other`.
  ASSAY_DEVICE void overlap(int step, float (&mine)[64], float (&other)[64]) {
    next_stage(step);
    begin(0, mine);
    const UnitScales scales = scales_of(input_of(step > 0 ? step - 1 : 0, 0));
    wgmma_wait<1>(queue, other);
    if (step > 0) promote(other, scales);
  }

  ASSAY_DEVICE void run() {
    for (int step = 0; step < args.stages - 2; ++step) {
      if (step < steps) load(step);
      cp_async_commit();
    }
    if constexpr (kUnits == 2) {
      for (int step = 0; step < steps; ++step) {
        next_stage(step);
        begin(0, even);
        begin(1, odd);
        const UnitScales first = scales_of(input_of(step, 0));
        wgmma_wait<1>(queue, even);
        promote(even, first);
        const UnitScales second = scales_of(input_of(step, 1));
        wgmma_wait<0>(queue, odd);
        promote(odd, second);
      }
    } else {
      for (int step = 0; step + 1 < steps; step += 2) {
        overlap(step, even, odd);
        overlap(step + 1, odd, even);
      }
      if (steps % 2 == 1) {
        overlap(steps - 1, even, odd);
        const UnitScales scales = scales_of(input_of(steps - 1, 0));
        wgmma_wait<0>(queue, even);
        promote(even, scales);
      } else {
        const UnitScales scales = scales_of(input_of(steps - 1, 0));
        wgmma_wait<0>(queue, odd);
        promote(odd, scales);
      }
    }
    ASSAY_UNROLL
    for (int i = 0; i < 64; ++i) store_sum(args, tile, row_of(i / 2 % 2), output_of(i), sum[i]);
  }
};

template <class Math, int kGroups, int kSteps>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(128 * kGroups, 1) gemm_wgmma(GemmArgs args) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GemmWgmma<Math, kGroups, kSteps>(args, block_index().x).run();
#else
  __trap();  // planned for sm_90 only
#endif
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
