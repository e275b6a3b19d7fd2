// cuBLAS by dlopen: matrix products by rows out of a library that thinks in columns.
//
// A matrix by rows [r, c] is one by columns [c, r], so that y = x · Wᵀ is asked for as yᵀ = (Wᵀ)ᵀ · xᵀ: W
// transposed, x as it is.
#include <cublas_v2.h>
#include <fmt/format.h>

#include <mutex>
#include <string>

#include "core/system/error.h"
#include "kernels/cuda/library_linear.h"
#include "kernels/cuda/loaded_library.h"

namespace assay::cuda {
namespace {

// cublasGemmEx, of which the header has overloads.
using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                  const void*, const void*, cudaDataType, int, const void*, cudaDataType, int,
                                  const void*, void*, cudaDataType, int, cublasComputeType_t,
                                  cublasGemmAlgo_t);

struct Cublas {
  std::string unavailable;
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  GemmEx gemm = nullptr;
  decltype(&cublasGetStatusString) status_text = nullptr;
};

Cublas load_cublas() {
  Cublas cublas;
  LoadedLibrary library("cuBLAS", "cublas", CUBLAS_VER_MAJOR);  // of the version compiled with
  library.find("cublasCreate_v2", cublas.create);
  library.find("cublasSetStream_v2", cublas.set_stream);
  library.find("cublasGemmEx", cublas.gemm);
  library.find("cublasGetStatusString", cublas.status_text);
  cublas.unavailable = library.unavailable();
  return cublas;
}

const Cublas& cublas() {
  static const Cublas loaded = load_cublas();
  return loaded;
}

void check(cublasStatus_t status, const char* doing) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error::io(fmt::format("cuBLAS, {}: {}", doing, cublas().status_text(status)));
}

cublasHandle_t cublas_of_this_thread() {
  struct Owned {
    cublasHandle_t handle = nullptr;
    Owned() { check(cublas().create(&handle), "starting"); }
  };
  static thread_local Owned owned;  // freed with the process, as the device's context may be gone before
  return owned.handle;
}

struct Types {
  cudaDataType_t operands, result;
  cublasComputeType_t compute;
};
Types types_of(GemmArguments::Kind kind) {
  switch (kind) {
    case GemmArguments::Kind::f32: return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC};
    case GemmArguments::Kind::tf32: return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case GemmArguments::Kind::bf16: return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case GemmArguments::Kind::i8: return {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
  }
  return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
}

}  // namespace

std::string cublas_unavailable() {
  return cublas().unavailable;
}

void cublas_gemm(const GemmArguments& a, Stream stream) {
  if (!cublas().unavailable.empty()) throw Error::io(cublas().unavailable);
  const cublasHandle_t handle = cublas_of_this_thread();
  check(cublas().set_stream(handle, static_cast<cudaStream_t>(stream)), "choosing a stream");
  const Types types = types_of(a.kind);
  const float one = 1, zero = 0;
  const std::int32_t integer_one = 1, integer_zero = 0;
  const bool integers = a.kind == GemmArguments::Kind::i8;
  check(cublas().gemm(handle, a.input_major ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(a.n),
                      static_cast<int>(a.m), static_cast<int>(a.k),
                      integers ? static_cast<const void*>(&integer_one) : &one, a.w, types.operands,
                      static_cast<int>(a.w_stride), a.x, types.operands, static_cast<int>(a.x_stride),
                      integers ? static_cast<const void*>(&integer_zero) : &zero, a.y, types.result,
                      static_cast<int>(a.y_stride), types.compute, CUBLAS_GEMM_DEFAULT),
        "multiplying");
}

}  // namespace assay::cuda
