// How a kernel is written for nvcc and for the emulator alike.
//
// A kernel is a template, or its header is included by one .cu alone. All device code lies in
//   namespace assay::cuda { inline namespace ASSAY_TARGET { … } }
// so that the function that nvcc made of it and the one of the emulator have different names, and one program
// may hold both.
#pragma once

#ifdef __CUDACC__
#define ASSAY_KERNEL __global__ void
#define ASSAY_DEVICE __device__ __forceinline__
#define ASSAY_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define ASSAY_TARGET on_device
#define ASSAY_UNROLL _Pragma("unroll")
#define ASSAY_NO_UNROLL _Pragma("unroll 1")  // where registers are short
#define ASSAY_READ_ONLY \
  const __grid_constant__  // an argument that is read where the launch put it, by an index, too
#else
#define ASSAY_KERNEL void
#define ASSAY_DEVICE inline
#define ASSAY_LAUNCH_BOUNDS(threads, blocks)
#define ASSAY_TARGET emulated
#define ASSAY_UNROLL
#define ASSAY_NO_UNROLL
#define ASSAY_READ_ONLY const
#endif
