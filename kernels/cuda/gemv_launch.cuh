// Which instance of a template a plan means: for gemv.cu, on the device, and for tests, under the emulator.
#pragma once

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/gemv.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <class Dot>
void launch_gemv_of(const GemvPlan& plan, const GemvProducts& products, Stream stream) {
  if (products.of[0].tokens == 1)
    launch(plan.launch, gemv<Dot, 1>, stream, products);
  else if (products.of[0].tokens <= 4)
    launch(plan.launch, gemv<Dot, 4>, stream, products);
  else
    launch(plan.launch, gemv<Dot, kMostTokens>, stream, products);
}
inline void launch_gemv(const GemvPlan& plan, Codes codes, const GemvProducts& products, Stream stream) {
  if (products.of[0].x_scales != nullptr) return launch_gemv_of<Int8Dot>(plan, products, stream);
  switch (codes) {
    case Codes::f32: return launch_gemv_of<DecodedDot<CodesF32>>(plan, products, stream);
    case Codes::bf16: return launch_gemv_of<DecodedDot<CodesBf16>>(plan, products, stream);
    case Codes::f16: return launch_gemv_of<DecodedDot<CodesF16>>(plan, products, stream);
    case Codes::e4m3: return launch_gemv_of<DecodedDot<CodesE4m3>>(plan, products, stream);
    case Codes::s8: return launch_gemv_of<DecodedDot<CodesS8>>(plan, products, stream);
  }
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
