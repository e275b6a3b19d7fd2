// Rows of heads as the attention kernels read them: each head on 16 bytes, zeros behind it, in the element
// type of the tensor cores. Numbers of bfloat16 that lie in memory as float32 become what they are.
#pragma once

#include "kernels/cuda/attention_args.h"
#include "kernels/cuda/device.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

constexpr unsigned kPackThreads = 256;

template <class T>
struct alignas(16) PackedVector {
  T v[16 / sizeof(T)];
};

// A thread makes 16 bytes.
template <class T>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(256, 4) pack_heads(PackArgs a) {
  constexpr unsigned kVector = 16 / sizeof(T);
  const unsigned vectors = a.padded / kVector;
  const std::uint64_t index = static_cast<std::uint64_t>(block_index().x) * kPackThreads + thread_id();
  if (index >= a.rows * a.heads * vectors) return;
  const unsigned first = static_cast<unsigned>(index % vectors) * kVector;
  const std::uint64_t head = index / vectors;
  const float* from = a.from + head / a.heads * a.stride + head % a.heads * a.dim;
  PackedVector<T> packed;
  ASSAY_UNROLL
  for (unsigned i = 0; i < kVector; ++i)
    packed.v[i] = from_float<T>(first + i < a.dim ? from[first + i] : 0.0f);
  static_cast<PackedVector<T>*>(a.to)[index] = packed;
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
