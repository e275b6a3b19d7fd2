// The products of gemm_wgmma.cuh, whose tiles are brought by the copy engine (TMA) at the word of a producer.
//
//   warpgroups 0 … kGroups - 1   multiply: wait for a full stage, begin its products, scale and add them
//   the last one                 a thread asks for tiles; a warp lays the scales beside them, x's times W's
//
// A stage has two barriers: full, of its bytes and scales, and empty, of the warps that have done with it. No thread
// that multiplies computes an address of global memory, copies, or meets another warp, so that two warpgroups take
// turns by themselves: while one scales and adds, the other's products are on the tensor cores (DeepGEMM). So one
// set of sums under way is enough, and registers that the producers do not need are the others'.
//
// Where W's scales change within 64 outputs, they are read from global memory when they are needed, as there.
#pragma once

#include "kernels/cuda/gemm_wgmma_tile.cuh"
#include "kernels/cuda/mbarrier.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <class Math, int kGroups, int kSteps>
struct GemmWgmmaTma : WgmmaTile<Math, kGroups, kSteps> {
  using Tile = WgmmaTile<Math, kGroups, kSteps>;
  using Tile::args, Tile::tile, Tile::steps, Tile::queue, Tile::kStage, Tile::kUnits, Tile::kRows;
  using Tile::input_of, Tile::row_of, Tile::by_halves, Tile::half_scales;
  using typename Tile::UnitScales;
  static constexpr int kProducer = 4 * kGroups;                           // its first warp
  static constexpr int kScales = Math::kScaled ? kUnits * 2 * kRows : 0;  // floats of a stage
  // Registers of 65,536: a multiple of 8 each; of one warpgroup and its producers there are enough.
  static constexpr int kFewer = 40, kMore = 232;

  int place = 0;       // in the ring
  unsigned phase = 0;  // of its stages: how often the ring has come round, 0 or 1

  ASSAY_DEVICE GemmWgmmaTma(const GemmArgs& a, unsigned block) : Tile(a, block) {}

  ASSAY_DEVICE unsigned char* stage() const {
    return shared_memory<unsigned char>(static_cast<unsigned>(place * kStage));
  }
  // [unit][half of the outputs][row]
  ASSAY_DEVICE float* scales() const {
    return shared_memory<float>(static_cast<unsigned>(args.stages * kStage)) + place * kScales;
  }
  ASSAY_DEVICE Mbarrier* barriers() const {
    return shared_memory<Mbarrier>(static_cast<unsigned>(args.stages * kStage) +
                                   static_cast<unsigned>(args.stages * kScales) * 4);
  }
  ASSAY_DEVICE Mbarrier* full() const { return barriers() + 2 * place; }
  ASSAY_DEVICE Mbarrier* empty() const { return barriers() + 2 * place + 1; }
  ASSAY_DEVICE void next() {
    if (++place < args.stages) return;
    place = 0;
    phase ^= 1;
  }

  ASSAY_DEVICE void make_barriers() {
    if (thread_id() == 0) {
      for (int i = 0; i < args.stages; ++i) {
        mbarrier_init(barriers() + 2 * i, Math::kScaled ? 1 + 32 : 1);
        mbarrier_init(barriers() + 2 * i + 1, 4 * kGroups);
      }
      mbarriers_ready();
    }
    sync_block();
  }

  // One thread.
  ASSAY_DEVICE void bring_tiles() {
    const TensorMap *x = args.maps, *w = args.maps + 1 + tile.group;
    map_ready(x);
    map_ready(w);
    for (int step = 0; step < steps; ++step, next()) {
      mbarrier_wait(empty(), phase ^ 1);
      mbarrier_expect(full(), kStage);
      copy_tile(stage(), x, step * Tile::kRowBytes, tile.row, full());
      copy_tile(stage() + Tile::kXStage, w, step * Tile::kRowBytes, tile.output, full());
    }
  }

  // One warp.
  ASSAY_DEVICE void bring_scales() {
    for (int step = 0; step < steps; ++step, next()) {
      mbarrier_wait(empty(), phase ^ 1);
      ASSAY_UNROLL
      for (int unit = 0; unit < kUnits; ++unit) lay_scales(input_of(step, unit), scales() + unit * 2 * kRows);
      mbarrier_arrive(full());
    }
  }
  ASSAY_DEVICE void lay_scales(std::int32_t input, float* to) const {
    const float* of_w = tile.weight.scales + scale_column(args, input);
    const float w[2] = {of_w[half_scales[0]], of_w[half_scales[1]]};
    const float* of_x = args.x_scales + (args.x_scale_columns == 1 ? 0 : input / 128);
    ASSAY_UNROLL
    for (int i = 0; i < kRows / 32; ++i) {
      const int row = i * 32 + static_cast<int>(lane_id()), in_tile = row < tile.rows ? row : 0;
      const float x = of_x[static_cast<std::int64_t>(tile.row + in_tile) * args.x_scale_columns];
      to[row] = x * w[0];
      to[kRows + row] = x * w[1];
    }
  }

  ASSAY_DEVICE UnitScales scales_of(int step, int unit) const {
    UnitScales found;
    if constexpr (Math::kScaled) {
      if (!by_halves) return Tile::scales_of(input_of(step, unit));
      ASSAY_UNROLL
      for (int i = 0; i < 4; ++i)
        found.both[i / 2][i % 2] = scales()[(unit * 2 + i % 2) * kRows + row_of(i / 2)];
    }
    return found;
  }

  ASSAY_DEVICE void multiply() {
    float part[64] = {};
    for (int step = 0; step < steps; ++step, next()) {
      mbarrier_wait(full(), phase);
      ASSAY_UNROLL
      for (int unit = 0; unit < kUnits; ++unit) {
        Tile::begin(stage(), unit, part);
        const UnitScales of_unit = scales_of(step, unit);
        wgmma_wait<0>(queue, part);
        if (unit + 1 == kUnits) {
          sync_warp();  // all its lanes have read their scales
          if (lane_id() == 0) mbarrier_arrive(empty());
        }
        Tile::promote(part, of_unit);
      }
    }
    Tile::store();
  }

  ASSAY_DEVICE void run() {
    make_barriers();
    if (warp_id() >= kProducer) {
      if constexpr (kGroups > 1) give_registers<kFewer>();
      if (warp_id() == kProducer && lane_id() == 0) bring_tiles();
      if (Math::kScaled && warp_id() == kProducer + 1) bring_scales();
    } else {
      if constexpr (kGroups > 1) take_registers<kMore>();
      multiply();
    }
  }
};

// Grid: tiles. Block: the warpgroups that multiply, and one that brings.
template <class Math, int kGroups, int kSteps>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(128 * (kGroups + 1), 1) gemm_wgmma_tma(GemmArgs args) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  GemmWgmmaTma<Math, kGroups, kSteps>(args, block_index().x).run();
#else
  __trap();  // planned for sm_90 only
#endif
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
