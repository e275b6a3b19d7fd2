// y = x · Wᵀ by sm_90a's wgmma: FP8 by blocks, and BF16. Tiles are copied by the threads that multiply.
//
// Tiles of x and W go through a ring of stages in shared memory, filled by
// cp.async, two stages behind the one in use: the tensor cores may still be reading the last one when the
// barrier of the next is passed. While they sum one block of products in one set of registers, the threads
// scale and add the block before from another; of blocks of 64, the second while the first is added.
#pragma once

#include "kernels/cuda/gemm_wgmma_tile.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <class Math, int kGroups, int kSteps>
struct GemmWgmma : WgmmaTile<Math, kGroups, kSteps> {
  using Tile = WgmmaTile<Math, kGroups, kSteps>;
  using Tile::args, Tile::tile, Tile::steps, Tile::queue, Tile::kRowBytes, Tile::kStage, Tile::kUnits;
  using Tile::input_of, Tile::promote, Tile::scales_of;
  using typename Tile::Element, typename Tile::UnitScales;
  static constexpr int kThreads = 128 * kGroups;
  using Layout = SharedRows<kRowBytes, Swizzle128>;

  // Places in the ring: of the stage in use, and of the one filled next. Counted, as a remainder by a number known
  // only at run time is a division.
  int in_use, filling = 0;
  float even[64] = {}, odd[64] = {};  // what tensor cores sum, in turns

  ASSAY_DEVICE GemmWgmma(const GemmArgs& a, unsigned block) : Tile(a, block), in_use(a.stages - 1) {}

  ASSAY_DEVICE int after(int place) const { return place + 1 == args.stages ? 0 : place + 1; }
  ASSAY_DEVICE unsigned char* stage_at(int place) const {
    return shared_memory<unsigned char>(static_cast<unsigned>(place * kStage));
  }

  ASSAY_DEVICE void load(int step) {
    unsigned char* const shared = stage_at(filling);
    filling = after(filling);
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Element));
    const std::int64_t begin = static_cast<std::int64_t>(step) * kRowBytes, row_bytes = args.inputs * kBytes;
    copy_rows<Tile::kRows, kThreads, Layout>(shared, args.x + tile.row * args.x_pitch, args.x_pitch,
                                             tile.rows, row_bytes, begin);
    copy_rows<Tile::kOutputs, kThreads, Layout>(shared + Tile::kXStage,
                                                tile.weight.codes + tile.output * args.w_pitch, args.w_pitch,
                                                args.outputs - tile.output, row_bytes, begin);
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

  // A stage is a unit: begins it in `mine`, and meanwhile adds up the one before, which is in `other`.
  ASSAY_DEVICE void overlap(int step, float (&mine)[64], float (&other)[64]) {
    next_stage(step);
    Tile::begin(stage_at(in_use), 0, mine);
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
        Tile::begin(stage_at(in_use), 0, even);
        Tile::begin(stage_at(in_use), 1, odd);
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
    Tile::store();
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
