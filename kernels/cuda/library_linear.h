// Linear layers by cuBLAS, which is loaded when it is first used: its absence stops nothing else.
//
//   arithmetic   weight                        product
//   f32          plain, FP8 or INT8 scaled     float32; or tf32 (10 bits of mantissa), a kernel of its own
//   bf16         plain                         bfloat16, sums in float32
//   int8         INT8, a scale a row           exact integers
// What is not stored as it is multiplied is converted on the device first, padded where cuBLAS asks for it.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/quantize.h"
#include "kernels/cuda/stored_vector.h"

namespace assay {
class Registry;
}

namespace assay::cuda {

class Machine;

// y = sums · x_scales[row] · w_scales[column] + bias, rounded to bfloat16 where so asked. `sums` may be y.
struct EpilogueArguments {
  const float* sums = nullptr;  // or:
  const std::int32_t* integers = nullptr;
  std::uint64_t sums_stride = 0, y_stride = 0;
  const float *x_scales = nullptr, *w_scales = nullptr;
  StoredVector bias;
  float* y = nullptr;
  std::uint32_t rows = 0, columns = 0;
  bool bfloat16 = false;
  bool rounds_before_bias = false;  // 8-bit layers round the product, then the sum
};

// y[m, n] = x[m, k] · w, w being [n, k] by rows, or [k, n] where input_major.
struct GemmArguments {
  enum class Kind : std::uint8_t { f32, tf32, bf16, i8 };  // y is float32; of i8, int32
  Kind kind = Kind::f32;
  bool input_major = false;
  std::uint32_t m = 0, n = 0, k = 0;
  const void *x = nullptr, *w = nullptr;
  void* y = nullptr;
  std::uint64_t x_stride = 0, w_stride = 0, y_stride = 0;  // elements
};

struct LibraryLinearLaunchers {
  void (*convert)(const LaunchPlan&, const ConvertArguments&, Stream);
  void (*epilogue)(const LaunchPlan&, const EpilogueArguments&, Stream);
  void (*quantize)(const LaunchPlan&, const QuantizeArguments&, Stream);
  void (*gemm)(const GemmArguments&, Stream);
  std::string (*unavailable)();  // why there is no gemm; empty: there is
};
LibraryLinearLaunchers device_library_linear_launchers();  // library_linear.cu, cublas.cpp
void add_library_linear_kernels(Registry& registry, Machine& machine,
                                const LibraryLinearLaunchers& launchers);

// cublas.cpp
std::string cublas_unavailable();
void cublas_gemm(const GemmArguments& arguments, Stream stream);

}  // namespace assay::cuda
