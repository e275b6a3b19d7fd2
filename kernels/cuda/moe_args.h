// What the kernel behind the grouped products of a mixture of experts is told (moe.cuh).
#pragma once

#include <cstdint>

namespace assay::cuda {

// y[t] = Σⱼ weights[t, j] · x[rows_of[t, j]], in the order of j: that of the experts' numbers.
struct CombineArgs {
  const float* x = nullptr;
  const float* weights = nullptr;
  const std::int32_t* rows_of = nullptr;
  float* y = nullptr;
  std::int64_t x_pitch = 0, y_pitch = 0;  // elements
  std::int32_t tokens = 0, visits = 0, columns = 0;
  bool bfloat16 = false;
};

}  // namespace assay::cuda
