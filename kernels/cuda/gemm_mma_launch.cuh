// Which instance of a template a plan means: for gemm_mma.cu, on the device, and for tests, under the
// emulator.
#pragma once

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/gemm_mma.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <class Math>
void launch_small(const GemmPlan& plan, const GemmArgs& args, Stream stream) {
  static_assert(GemmMma<Math, 2, 2, 2, 4>::kRows == 64 && GemmMma<Math, 2, 2, 2, 4>::kOutputs == 64);
  launch(plan.launch, gemm_mma<Math, 2, 2, 2, 4>, stream, args);
}
template <class Math>
void launch_either(const GemmPlan& plan, const GemmArgs& args, Stream stream) {
  static_assert(GemmMma<Math, 2, 4, 4, 4>::kRows == 128 && GemmMma<Math, 2, 4, 4, 4>::kOutputs == 128);
  if (plan.size == GemmTileSize::small) return launch_small<Math>(plan, args, stream);
  launch(plan.launch, gemm_mma<Math, 2, 4, 4, 4>, stream, args);
}

template <bool kBf16Arithmetic>
void launch_weight_only(const GemmPlan& plan, Codes codes, const GemmArgs& args, Stream stream) {
  switch (codes) {
    case Codes::bf16:
      if constexpr (kBf16Arithmetic) return launch_either<WeightOnly<CodesBf16, true>>(plan, args, stream);
      return launch_small<WeightOnly<CodesBf16, kBf16Arithmetic>>(plan, args, stream);
    case Codes::f16: return launch_small<WeightOnly<CodesF16, kBf16Arithmetic>>(plan, args, stream);
    case Codes::e4m3: return launch_small<WeightOnly<CodesE4m3, kBf16Arithmetic>>(plan, args, stream);
    case Codes::s8: return launch_small<WeightOnly<CodesS8, kBf16Arithmetic>>(plan, args, stream);
    case Codes::f32: break;
  }
}

inline void launch_mma(const GemmPlan& plan, const GemmShape& shape, const GemmArgs& args, Stream stream) {
  switch (shape.math) {
    case GemmMath::fp8: return launch_either<Fp8Native>(plan, args, stream);
    case GemmMath::fp8_half: return launch_either<Fp8AsHalf>(plan, args, stream);
    case GemmMath::int8: return launch_either<Int8>(plan, args, stream);
    case GemmMath::exact: return launch_weight_only<false>(plan, shape.codes, args, stream);
    case GemmMath::bf16: return launch_weight_only<true>(plan, shape.codes, args, stream);
  }
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
