#include "tests/kernels/cuda/gemm_emulated.h"

#include "kernels/cuda/gemm_mma_launch.cuh"
#include "kernels/cuda/gemm_prepare_launch.cuh"
#include "kernels/cuda/gemm_wgmma_launch.cuh"
#include "kernels/cuda/gemv_launch.cuh"

namespace assay {
namespace {

using namespace cuda;

void mma(const GemmPlan& plan, const GemmShape& shape, const GemmArgs& args, int sm, Stream stream) {
  if (sm >= 89)
    launch_mma<Fp8Native>(plan, shape, args, stream);
  else
    launch_mma<Fp8AsHalf>(plan, shape, args, stream);
}

}  // namespace

GemmLaunchers emulated_gemm_launchers() {
  return {.mma = mma,
          .wgmma = launch_wgmma,
          .gemv = launch_gemv,
          .planes = launch_planes,
          .quantize_fp8 = launch_quantize_fp8,
          .quantize_int8 = launch_quantize_int8,
          .align_rows = launch_align_rows,
          .unpack_q8_0 = launch_unpack_q8_0,
          .gate = launch_gate,
          .combine = launch_combine};
}

bool is_small_product(const CaseId& id) {
  const auto up = [](std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; };
  return up(id.number("m", 1), 64) * up(id.number("n", 1), 128) * id.number("k", 1) <= 64 * 384 * 600;
}

}  // namespace assay
