// Products of FP8 matrices by cuBLASLt, the yardstick of our own:
//
//   a scale a token and one for W        from sm_89 on; the token's is applied behind the product
//   1 × 128 of x and 128 × 128 of W      sm_90, cuBLASLt 12.9 or later: what DeepSeek's checkpoints ask for
//
// Sources: cuBLAS documentation, "cublasLtMatmul()" (operands of FP8: both with k on end, 16 bytes aligned)
// and cublasLt.h's CUBLASLT_MATMUL_MATRIX_SCALE_*; the places of block scales as PyTorch's ScaledBlas.cpp
// checks them: x's [⌈k/128⌉, m], W's [⌈n/128⌉, ⌈k/128⌉ up to a multiple of 4].
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/library_linear.h"

namespace assay::cuda {

enum class Fp8Scales : std::uint8_t { tensor, blocks };
inline constexpr std::size_t kFp8Step = 16;      // of n and k: what is aligned to 16 bytes
inline constexpr std::size_t kFp8TokenStep = 4;  // of m, where scales lie token by token
inline constexpr std::size_t kFp8Block = 128;

// y[m, n] = x[m, k] · w[n, k]ᵀ, each element times its scale; all e4m3 but y.
struct Fp8GemmArguments {
  Fp8Scales scales = Fp8Scales::tensor;
  std::uint32_t m = 0, n = 0, k = 0;  // n and k multiples of kFp8Step
  const std::uint8_t *x = nullptr, *w = nullptr;
  float* y = nullptr;
  std::uint64_t x_stride = 0, w_stride = 0, y_stride = 0;  // elements
  // tensor: of x none, of w one. blocks: x's [⌈k/128⌉, m], w's [⌈n/128⌉, w_scale_stride].
  const float *x_scales = nullptr, *w_scales = nullptr;
};
constexpr std::size_t w_scale_stride(std::size_t k) {
  return round_up(blocks_for(k, kFp8Block), 4);
}

struct Fp8LibraryLaunchers {
  void (*convert)(const LaunchPlan&, const ConvertArguments&, Stream);
  void (*quantize)(const LaunchPlan&, const QuantizeArguments&, Stream);
  void (*epilogue)(const LaunchPlan&, const EpilogueArguments&, Stream);
  // In `workspace`, of kFp8Workspace bytes.
  void (*gemm)(const Fp8GemmArguments&, void* workspace, Stream);
  std::string (*unavailable)(Fp8Scales);  // why there is no such gemm; empty: there is
};
inline constexpr std::size_t kFp8Workspace = std::size_t{32} << 20;

Fp8LibraryLaunchers device_fp8_library_launchers();  // library_linear.cu, cublaslt.cpp
void add_fp8_library_kernels(Registry& registry, Machine& machine, const Fp8LibraryLaunchers& launchers);

// cublaslt.cpp
std::string cublaslt_unavailable(Fp8Scales scales);
void cublaslt_fp8_gemm(const Fp8GemmArguments& arguments, void* workspace, Stream stream);

}  // namespace assay::cuda
