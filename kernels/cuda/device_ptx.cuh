// device.cuh for nvcc. Not included by itself.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/launch.h"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

ASSAY_DEVICE unsigned thread_id() {
  return threadIdx.x;
}
ASSAY_DEVICE unsigned thread_count() {
  return blockDim.x;
}
ASSAY_DEVICE Extent3 block_index() {
  return {blockIdx.x, blockIdx.y, blockIdx.z};
}
ASSAY_DEVICE Extent3 grid_size() {
  return {gridDim.x, gridDim.y, gridDim.z};
}

extern __shared__ __align__(1024) unsigned char dynamic_shared[];

template <class T>
ASSAY_DEVICE T* shared_memory(unsigned byte_offset = 0) {
  return reinterpret_cast<T*>(dynamic_shared + byte_offset);
}
ASSAY_DEVICE std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

ASSAY_DEVICE void sync_block() {
  __syncthreads();
}
ASSAY_DEVICE void sync_warp() {
  __syncwarp();
}
ASSAY_DEVICE void sync_group(unsigned id, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
template <class T>
ASSAY_DEVICE T shuffle_xor(T x, unsigned mask) {
  return __shfl_xor_sync(kAllLanes, x, static_cast<int>(mask));
}
template <class T>
ASSAY_DEVICE T shuffle_down(T x, unsigned delta) {
  return __shfl_down_sync(kAllLanes, x, delta);
}
template <class T>
ASSAY_DEVICE T shuffle_idx(T x, unsigned lane) {
  return __shfl_sync(kAllLanes, x, static_cast<int>(lane));
}
ASSAY_DEVICE unsigned ballot(bool p) {
  return __ballot_sync(kAllLanes, p);
}
ASSAY_DEVICE bool any(bool p) {
  return __any_sync(kAllLanes, p) != 0;
}
ASSAY_DEVICE bool all(bool p) {
  return __all_sync(kAllLanes, p) != 0;
}

// PTX ISA, "cp.async": of a source size below the copy's, the rest is zeros.
ASSAY_DEVICE void cp_async16(void* shared, const void* global, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
}
ASSAY_DEVICE void cp_async4(void* shared, const void* global, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(valid ? 4 : 0)
               : "memory");
}
ASSAY_DEVICE void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kLeft>
ASSAY_DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

ASSAY_DEVICE float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <class T>
ASSAY_DEVICE T atomic_add(T* address, T x) {
  return atomicAdd(address, x);
}
ASSAY_DEVICE void fence_device() {
  __threadfence();
}
template <class T>
ASSAY_DEVICE T load_fresh(const T* address) {
  return __ldcg(address);
}

// PTX ISA, "ld.global.nc". The instruction stays where it is among other volatile ones, products of matrices too: what is asked
// for ahead of them is not put off until it is needed.
template <class T>
ASSAY_DEVICE T load_once(const void* address, bool valid) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16);
  std::uint32_t w[4];
  asm volatile(
      "{\n"
      ".reg .pred valid;\n"
      "setp.ne.u32 valid, %5, 0;\n"
      "mov.b32 %0, 0;\n"
      "mov.b32 %1, 0;\n"
      "mov.b32 %2, 0;\n"
      "mov.b32 %3, 0;\n"
      "@valid ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {%0, %1, %2, %3}, [%4];\n"
      "}"
      : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2]), "=&r"(w[3])
      : "l"(address), "r"(valid ? 1u : 0u));
  T x;
  memcpy(&x, w, sizeof x);
  return x;
}

// On the host: launches `kernel` as planned. Throws Error where the driver refuses.
template <class... Parameters, class... Arguments>
void launch(const LaunchPlan& plan, void (*kernel)(Parameters...), Stream stream,
            const Arguments&... arguments) {
  allow_shared(reinterpret_cast<const void*>(kernel), plan);
  if (plan.grid.count() == 0) return;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = plan.cluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(plan.grid.x, plan.grid.y, plan.grid.z);
  config.blockDim = dim3(plan.block.x);
  config.dynamicSmemBytes = plan.shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &cluster;
  config.numAttrs = plan.cluster > 1 ? 1 : 0;
  check_launch(plan, cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
