#ifdef ASSAY_HAS_OPENBLAS
#include <fmt/format.h>

#include <cblas.h>

#include <limits>
#include <mutex>

#include "core/system/error.h"
#include "core/system/loaded_library.h"
#include "kernels/library/gemm.h"

namespace assay {

void openblas_gemm(const GemmArguments& a) {
  static std::mutex one_at_a_time;  // the number of threads is the library's, not the call's
  const std::lock_guard lock(one_at_a_time);
  constexpr std::size_t kMost = std::numeric_limits<blasint>::max();
  if (a.tokens > kMost || a.inputs > kMost || a.outputs > kMost || a.x_stride > kMost)
    throw Error::internal(fmt::format("[{}, {}] by [{}, {}] is too large for OpenBLAS", a.tokens, a.inputs,
                                      a.inputs, a.outputs));
  static const LoadedLibrary library("libopenblas.so.0");
  static auto* const set_threads =
      library.function<decltype(openblas_set_num_threads)>("openblas_set_num_threads");
  static auto* const sgemm = library.function<decltype(cblas_sgemm)>("cblas_sgemm");
  set_threads(a.jobs);
  sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<blasint>(a.tokens),
        static_cast<blasint>(a.outputs), static_cast<blasint>(a.inputs), 1.0F, a.x,
        static_cast<blasint>(a.x_stride), a.w, static_cast<blasint>(a.inputs), 0.0F, a.y,
        static_cast<blasint>(a.outputs));
}

}  // namespace assay
#endif
