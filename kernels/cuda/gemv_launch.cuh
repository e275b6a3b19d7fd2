// Which instance of a template a plan means: for gemv.cu, on the device, and for tests, under the emulator.
#pragma once

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/gemv.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <class Dot>
void launch_gemv_of(const GemvPlan& plan, const GemvArgs& args, Stream stream) {
  if (args.tokens == 1)
    launch(plan.launch, gemv<Dot, 1>, stream, args);
  else if (args.tokens <= 4)
    launch(plan.launch, gemv<Dot, 4>, stream, args);
  else
    launch(plan.launch, gemv<Dot, kMostTokens>, stream, args);
}
inline void launch_gemv(const GemvPlan& plan, Codes codes, const GemvArgs& args, Stream stream) {
  if (args.x_scales != nullptr) return launch_gemv_of<Int8Dot>(plan, args, stream);
  switch (codes) {
    case Codes::f32: return launch_gemv_of<DecodedDot<CodesF32>>(plan, args, stream);
    case Codes::bf16: return launch_gemv_of<DecodedDot<CodesBf16>>(plan, args, stream);
    case Codes::f16: return launch_gemv_of<DecodedDot<CodesF16>>(plan, args, stream);
    case Codes::e4m3: return launch_gemv_of<DecodedDot<CodesE4m3>>(plan, args, stream);
    case Codes::s8: return launch_gemv_of<DecodedDot<CodesS8>>(plan, args, stream);
  }
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
