// What the kernels that prepare x and W are told (gemm_prepare.cuh).
#pragma once

#include <cstdint>

namespace assay::cuda {

inline constexpr int kPrepareThreads = 128;

struct PrepareArgs {
  const float* x = nullptr;
  std::int64_t x_stride = 0;             // elements
  const std::int32_t* gather = nullptr;  // row r of the result is row gather[r] of x; null: r
  std::int64_t rows = 0;                 // of the result
  std::int32_t columns = 0;
  unsigned char* out = nullptr;
  std::int64_t out_pitch = 0, out_plane = 0;  // bytes
  float* scales = nullptr;                    // [rows, ceil(columns / 128)], or [rows]
  std::int32_t* bad = nullptr;                // set where a number is not finite, and so not quantized
};

struct RepackArgs {
  const unsigned char* codes = nullptr;
  std::int64_t rows = 0, row_bytes = 0;
  unsigned char* out = nullptr;
  std::int64_t out_pitch = 0;
  float* scales = nullptr;
};

}  // namespace assay::cuda
