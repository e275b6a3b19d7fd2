// Reading and writing global memory: stored vectors, and four float32 at a time where they are aligned.
#pragma once

#include <cstring>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/stored_vector.h"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

ASSAY_DEVICE float element(const StoredVector& vector, std::uint64_t i) {
  switch (vector.type) {
    case StoredAs::f32: return static_cast<const float*>(vector.data)[i];
    case StoredAs::bf16: return to_float(static_cast<const bf16*>(vector.data)[i]);
    case StoredAs::f16: return to_float(static_cast<const f16*>(vector.data)[i]);
    case StoredAs::none: break;
  }
  return 0;
}

struct alignas(16) Quad {
  float v[4];
};

struct alignas(8) Pair {
  float v[2];
};
struct alignas(8) WordPair {
  std::uint32_t v[2];
};

// Four aligned bytes, whatever they are.
ASSAY_DEVICE std::uint32_t load_word(const void* at) {
#ifdef __CUDA_ARCH__
  return *static_cast<const std::uint32_t*>(at);
#else
  std::uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
#endif
}

ASSAY_DEVICE bool aligned16(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
}

// Elements [4i, 4i + 4) of a row of `columns`; zeros beyond its end. One load where the row is aligned.
ASSAY_DEVICE Quad load_quad(const float* row, bool aligned, std::uint32_t quad, std::uint32_t columns) {
  const std::uint32_t first = 4 * quad;
  if (aligned && first + 4 <= columns) return *reinterpret_cast<const Quad*>(row + first);
  Quad q;
  ASSAY_UNROLL
  for (std::uint32_t j = 0; j < 4; ++j) q.v[j] = first + j < columns ? row[first + j] : 0.0f;
  return q;
}
ASSAY_DEVICE void store_quad(float* row, bool aligned, std::uint32_t quad, std::uint32_t columns,
                             const Quad& q) {
  const std::uint32_t first = 4 * quad;
  if (aligned && first + 4 <= columns) {
    *reinterpret_cast<Quad*>(row + first) = q;
    return;
  }
  ASSAY_UNROLL
  for (std::uint32_t j = 0; j < 4; ++j) {
    if (first + j < columns) row[first + j] = q.v[j];
  }
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
