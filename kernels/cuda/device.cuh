// The few things our kernels do that C++ does not: where a thread is, shared memory, barriers, exchange
// within a warp, asynchronous copies, tensor cores. Under nvcc they are instructions; anywhere else they are
// the emulator's (emulator.h), so that the same kernel runs on a host, slowly and strictly.
//
//   template <int kThreads>
//   ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) sum_rows(SumArguments a) {
//     const float* row = a.x + block_index().x * a.stride;
//     float sum = 0;
//     for (unsigned i = thread_id(); i < a.columns; i += kThreads) sum += row[i];
//     sum = block_sum<kThreads>(sum, shared_memory<float>());
//     if (thread_id() == 0) a.y[block_index().x] = sum;
//   }
//   …
//   launch(plan, sum_rows<256>, stream, arguments);
//
// Rules that make both possible: blocks are one-dimensional and whole warps; all shared memory is dynamic;
// every thread of a warp calls a warp's function, in the same line; device functions of <cmath> are called
// with float arguments by their plain names (expf, rsqrtf is ours: reciprocal_root).
//
//   thread_id() thread_count() lane_id() warp_id() block_index() grid_size()
//   shared_memory<T>(byte_offset)                    the block's, aligned to 1024 bytes
//   sync_block() sync_warp()
//   sync_group(id, threads)                          hardware barrier 1 … 15, for a part of the block's warps
//   shuffle_xor(x, mask) shuffle_down(x, delta) shuffle_idx(x, lane)   all 32 lanes; delta beyond the end:
//   own ballot(p) any(p) all(p) cp_async16(shared, global, valid)                16 bytes, aligned; not
//   valid: zeros, source not read cp_async4(shared, global, valid)                 4 bytes cp_async_commit()
//   cp_async_wait<N>()             all groups of this thread but the last N have landed ldmatrix_x2,
//   ldmatrix_x4, …_trans, mma_…         mma.cuh warp_sum, warp_max, block_sum, block_max         reduce.cuh
//   fast_exp2(x)                                     2^x to 2 ulp; results below 2^-126 are 0
//   reciprocal_root(x)                               1/√x, rounded twice
//   atomic_add(address, x)
//   fence_device()                                   what this thread wrote before is seen by all before what it writes behind
//   load_fresh(address)                              past the first cache: what other blocks wrote
//   load_once<T>(address, valid)                     16 bytes, aligned, that nobody reads again nor writes meanwhile; not valid:
//                                                    zeros, source not read
#pragma once

#include "kernels/cuda/device_macros.cuh"
#include "kernels/cuda/extent.h"
#include "kernels/cuda/number.cuh"

#ifdef __CUDACC__
#include "kernels/cuda/device_ptx.cuh"
#else
#include "kernels/cuda/device_emulated.cuh"
#endif

namespace assay::cuda {
inline namespace ASSAY_TARGET {

ASSAY_DEVICE unsigned lane_id() {
  return thread_id() % 32;
}
ASSAY_DEVICE unsigned warp_id() {
  return thread_id() / 32;
}
ASSAY_DEVICE float reciprocal_root(float x) {
  return 1.0f / sqrtf(x);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
