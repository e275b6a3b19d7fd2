// Which instance of a template a plan means: for gemm.cu, on the device, and for tests, under the emulator.
#pragma once

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/gemm_prepare.cuh"
#include "kernels/cuda/moe.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

inline void launch_planes(const LaunchPlan& plan, int planes, const PrepareArgs& args, Stream stream) {
  switch (planes) {
    case 0: return launch(plan, split_planes<0>, stream, args);
    case 1: return launch(plan, split_planes<1>, stream, args);
    default: return launch(plan, split_planes<3>, stream, args);
  }
}
inline void launch_quantize_fp8(const LaunchPlan& plan, bool dequantized, const PrepareArgs& args,
                                Stream stream) {
  if (dequantized)
    launch(plan, quantize_fp8<true>, stream, args);
  else
    launch(plan, quantize_fp8<false>, stream, args);
}
inline void launch_quantize_int8(const LaunchPlan& plan, const PrepareArgs& args, Stream stream) {
  launch(plan, quantize_int8<kPrepareThreads>, stream, args);
}
inline void launch_align_rows(const LaunchPlan& plan, const RepackArgs& args, Stream stream) {
  launch(plan, align_rows<kPrepareThreads>, stream, args);
}
inline void launch_unpack_q8_0(const LaunchPlan& plan, const RepackArgs& args, Stream stream) {
  launch(plan, unpack_q8_0<kPrepareThreads>, stream, args);
}
inline void launch_combine(const LaunchPlan& plan, const CombineArgs& args, Stream stream) {
  launch(plan, combine_rows<kPrepareThreads>, stream, args);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
