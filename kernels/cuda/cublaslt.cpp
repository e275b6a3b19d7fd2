// cuBLASLt by dlopen: FP8 products by rows out of a library that thinks in columns. As in cublas.cpp, y = x ·
// Wᵀ is asked for as yᵀ = W · xᵀ: the library's first operand is W, transposed, and its second is x. So both
// have k on end, which is the one layout that FP8 has on sm_89 and sm_90.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <string>

#include "core/system/error.h"
#include "kernels/cuda/fp8_library.h"
#include "kernels/cuda/loaded_library.h"

namespace assay::cuda {
namespace {

constexpr std::size_t kFirstWithBlocks = 120'900;  // scales of 128 and 128 × 128: cuBLASLt 12.9

struct CublasLt {
  std::string unavailable;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtGetStatusString) status_text = nullptr;
  decltype(&cublasLtMatmulDescCreate) describe = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set = nullptr;
  decltype(&cublasLtMatmulDescDestroy) drop_description = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) lay_out = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) drop_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) prefer = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) drop_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
};

CublasLt load_cublaslt() {
  CublasLt lt;
  LoadedLibrary library("cuBLASLt", "cublasLt", CUBLAS_VER_MAJOR);
  library.find("cublasLtCreate", lt.create);
  library.find("cublasLtGetVersion", lt.version);
  library.find("cublasLtGetStatusString", lt.status_text);
  library.find("cublasLtMatmulDescCreate", lt.describe);
  library.find("cublasLtMatmulDescSetAttribute", lt.set);
  library.find("cublasLtMatmulDescDestroy", lt.drop_description);
  library.find("cublasLtMatrixLayoutCreate", lt.lay_out);
  library.find("cublasLtMatrixLayoutDestroy", lt.drop_layout);
  library.find("cublasLtMatmulPreferenceCreate", lt.prefer);
  library.find("cublasLtMatmulPreferenceSetAttribute", lt.set_preference);
  library.find("cublasLtMatmulPreferenceDestroy", lt.drop_preference);
  library.find("cublasLtMatmulAlgoGetHeuristic", lt.choose);
  library.find("cublasLtMatmul", lt.multiply);
  lt.unavailable = library.unavailable();
  return lt;
}

const CublasLt& lt() {
  static const CublasLt loaded = load_cublaslt();
  return loaded;
}

void check(cublasStatus_t status, std::string_view doing) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error::io(fmt::format("cuBLASLt, {}: {}", doing, lt().status_text(status)));
}

cublasLtHandle_t cublaslt_of_this_thread() {
  struct Owned {
    cublasLtHandle_t handle = nullptr;
    Owned() { check(lt().create(&handle), "starting"); }
  };
  static thread_local Owned owned;  // freed with the process, as the device's context may be gone before
  return owned.handle;
}

struct DropLayout {
  void operator()(cublasLtMatrixLayout_t layout) const { lt().drop_layout(layout); }
};
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, DropLayout>;
// rows × columns in the library's sense: columns are `stride` elements apart.
Layout layout(cudaDataType_t type, std::uint64_t rows, std::uint64_t columns, std::uint64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  check(lt().lay_out(&made, type, rows, columns, static_cast<std::int64_t>(stride)), "describing a matrix");
  return Layout(made);
}

struct DropDescription {
  void operator()(cublasLtMatmulDesc_t description) const { lt().drop_description(description); }
};
using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, DropDescription>;

template <class T>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(lt().set(description.get(), attribute, &value, sizeof value), "describing a product");
}

Description describe(const Fp8GemmArguments& a) {
  cublasLtMatmulDesc_t made = nullptr;
  check(lt().describe(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
  Description description(made);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  set(description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(a.w_scales));
  if (a.scales == Fp8Scales::tensor) return description;
#if CUBLAS_VERSION >= 120900
  set(description, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(a.x_scales));
  set(description, CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
      static_cast<std::int32_t>(CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F));
  set(description, CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
      static_cast<std::int32_t>(CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F));
#endif
  return description;
}

struct Operation {
  Description description;
  Layout w, x, y;
  explicit Operation(const Fp8GemmArguments& a)
      : description(describe(a)),
        w(layout(CUDA_R_8F_E4M3, a.k, a.n, a.w_stride)),
        x(layout(CUDA_R_8F_E4M3, a.k, a.m, a.x_stride)),
        y(layout(CUDA_R_32F, a.n, a.m, a.y_stride)) {}
};

cublasLtMatmulAlgo_t chosen_by_library(const Fp8GemmArguments& a, const Operation& operation) {
  cublasLtMatmulPreference_t made = nullptr;
  check(lt().prefer(&made), "choosing an algorithm");
  const auto drop = [](cublasLtMatmulPreference_t p) { lt().drop_preference(p); };
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(drop)> preference(made, drop);
  check(lt().set_preference(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kFp8Workspace,
                            sizeof kFp8Workspace),
        "choosing an algorithm");
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t status = lt().choose(cublaslt_of_this_thread(), operation.description.get(),
                                            operation.w.get(), operation.x.get(), operation.y.get(),
                                            operation.y.get(), preference.get(), 1, &result, &found);
  check(status == CUBLAS_STATUS_SUCCESS && found == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : status,
        fmt::format("choosing an algorithm for {} × {} × {}", a.m, a.n, a.k));
  return result.algo;
}

// The library's choice depends on shapes and alignments, and takes longer than many a product.
const cublasLtMatmulAlgo_t& algorithm(const Fp8GemmArguments& a, const Operation& operation) {
  const auto low_bits = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 256; };
  const std::array<std::uint64_t, 10> key = {static_cast<std::uint64_t>(a.scales),
                                             a.m,
                                             a.n,
                                             a.k,
                                             a.x_stride,
                                             a.w_stride,
                                             a.y_stride,
                                             low_bits(a.x),
                                             low_bits(a.w),
                                             low_bits(a.y)};
  static thread_local std::map<std::array<std::uint64_t, 10>, cublasLtMatmulAlgo_t> chosen;
  const auto known = chosen.find(key);
  return known != chosen.end() ? known->second
                               : chosen.emplace(key, chosen_by_library(a, operation)).first->second;
}

}  // namespace

std::string cublaslt_unavailable(Fp8Scales scales) {
  if (!lt().unavailable.empty() || scales == Fp8Scales::tensor) return lt().unavailable;
  const std::size_t version = lt().version();
  if (CUBLAS_VERSION >= kFirstWithBlocks && version >= kFirstWithBlocks) return {};
  return fmt::format(
      "scales by blocks came with cuBLASLt 12.9: this is {}.{}, and assay was built with {}.{}",
      version / 10'000, version / 100 % 100, CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR);
}

void cublaslt_fp8_gemm(const Fp8GemmArguments& a, void* workspace, Stream stream) {
  if (const std::string why = cublaslt_unavailable(a.scales); !why.empty()) throw Error::io(why);
  const Operation operation(a);
  const float one = 1, zero = 0;
  check(lt().multiply(cublaslt_of_this_thread(), operation.description.get(), &one, a.w, operation.w.get(),
                      a.x, operation.x.get(), &zero, a.y, operation.y.get(), a.y, operation.y.get(),
                      &algorithm(a, operation), workspace, kFp8Workspace, static_cast<cudaStream_t>(stream)),
        "multiplying");
}

}  // namespace assay::cuda
