// Sums and maxima over a warp or a block; every thread gets the result, which is the same bits in each.
// `shared` has room for a T a warp; it may be used again after the next barrier.
#pragma once

#include "kernels/cuda/device.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

struct Sum {
  template <class T>
  ASSAY_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
// NaN wins, as it does nowhere in fmaxf.
struct Maximum {
  template <class T>
  ASSAY_DEVICE T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};

// A butterfly: both partners of a step compute the same sum, operands swapped.
template <class T, class Combine>
ASSAY_DEVICE T warp_reduce(T x, Combine combine) {
  ASSAY_UNROLL
  for (unsigned mask = 16; mask != 0; mask /= 2) x = combine(x, shuffle_xor(x, mask));
  return x;
}
template <class T>
ASSAY_DEVICE T warp_sum(T x) {
  return warp_reduce(x, Sum());
}
template <class T>
ASSAY_DEVICE T warp_max(T x) {
  return warp_reduce(x, Maximum());
}

template <int kThreads, class T, class Combine>
ASSAY_DEVICE T block_reduce(T x, T* shared, Combine combine) {
  constexpr unsigned kWarps = kThreads / 32;
  static_assert(kThreads % 32 == 0 && kWarps <= 32);
  x = warp_reduce(x, combine);
  if (lane_id() == 0) shared[warp_id()] = x;
  sync_block();
  x = shared[0];
  ASSAY_UNROLL
  for (unsigned w = 1; w < kWarps; ++w) x = combine(x, shared[w]);
  sync_block();  // all have read: `shared` is free
  return x;
}
template <int kThreads, class T>
ASSAY_DEVICE T block_sum(T x, T* shared) {
  return block_reduce<kThreads>(x, shared, Sum());
}
template <int kThreads, class T>
ASSAY_DEVICE T block_max(T x, T* shared) {
  return block_reduce<kThreads>(x, shared, Maximum());
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
