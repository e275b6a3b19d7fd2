// sm_90a's products of a warpgroup: D = A·B + D of 64 × 128 or 64 × 32, A and B in shared memory, asynchronous.
//
//   SharedOperand a = shared_operand(tile);                // rows of 128 bytes, Swizzle128
//   wgmma_fence(d);                                        // D is given away
//   for (k …) wgmma_m64n128<e4m3>(queue, d, a.at(k), b.at(k), k != 0);
//   wgmma_commit(queue);
//   wgmma_wait<0>(queue, d);                               // and has come back
//
//   wgmma_m64n32<bf16>(…)                                  // the same of 32 columns: float d[16]
//   DownOperand v = down_operand(tiles, bytes_a_tile);     // B as it lies when its rows are the terms
//   wgmma_m64n128_down<bf16>(queue, d, a.at(k), v.at(k), k != 0);
//
// A and B lie by rows of 128 bytes along K, in groups of 8 rows: 1024 bytes, aligned so, in which 16-byte
// chunk c of row r is at place c ^ r ("128-byte swizzling", K-major: PTX ISA, "Shared Memory Matrix Layout").
// A descriptor (PTX ISA, "Matrix Descriptor") holds, each without its lowest 4 bits:
//
//   bits 0–13 address   16–29 leading offset (of swizzled K-major layouts: not used)   32–45 from 8 rows to
//   the next 8   49–51 offset of the pattern: 0, as groups are aligned   62–63 swizzle: 1 is 128 bytes
//
// A step is 32 bytes of a row: k = 32 of 8 bits, 16 of bfloat16; the next step's address is 32 bytes on, as
// the swizzle is applied to the sum.
//
// A B "down" is of 16 bits, and its rows of 128 bytes are terms, their 64 elements columns ("MN-major"): the leading offset
// is from 64 columns to the next 64, the other from 8 terms to the next 8. A step is 16 rows.
//
// Of D a thread holds (PTX ISA, "wgmma.m64nNk32 … accumulator D"), with w
// its warp in the group and g, t = lane / 4, lane % 4:
//
//   d[4j], d[4j+1]: (16w + g, 8j + 2t + {0, 1});   d[4j+2], d[4j+3]: the same of row 16w + g + 8
//
// What plain code wrote to shared memory (cp.async as well) is seen by wgmma after shared_to_wgmma() of the
// thread that wrote, and a barrier.
#pragma once

#include "kernels/cuda/device.cuh"

#ifndef __CUDACC__
#include "kernels/cuda/wgmma_emulated.h"
#endif

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// Where chunk c of row r lies.
struct Swizzle128 {
  ASSAY_DEVICE static int chunk(int row, int chunk) { return chunk ^ (row & 7); }
};

struct SharedOperand {
  std::uint64_t descriptor;
  ASSAY_DEVICE std::uint64_t at(int step) const { return descriptor + static_cast<unsigned>(step * 32 >> 4); }
};
struct DownOperand {
  std::uint64_t descriptor;
  ASSAY_DEVICE std::uint64_t at(int step) const {
    return descriptor + static_cast<unsigned>(step * 2048 >> 4);
  }
};
// `leading`: bytes, or 16 where it is not used.
ASSAY_DEVICE std::uint64_t matrix_descriptor(std::uint32_t address, std::uint64_t leading = 16) {
  constexpr std::uint64_t kGroupOfRows = 1024, kSwizzle = 1;
  return (address & 0x3FFFFu) >> 4 | leading >> 4 << 16 | (kGroupOfRows >> 4) << 32 | kSwizzle << 62;
}

#ifdef __CUDACC__

ASSAY_DEVICE SharedOperand shared_operand(const void* tile) {
  return {matrix_descriptor(shared_address(tile))};
}
ASSAY_DEVICE DownOperand down_operand(const void* tiles, unsigned bytes_a_tile) {
  return {matrix_descriptor(shared_address(tiles), bytes_a_tile)};
}

struct WgmmaQueue {};  // hardware's own

ASSAY_DEVICE void shared_to_wgmma() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// The compiler must neither keep nor move D while it is the tensor core's.
template <int kSums>
ASSAY_DEVICE void hold(float (&d)[kSums]) {
  ASSAY_UNROLL
  for (int i = 0; i < kSums; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

template <int kSums>
ASSAY_DEVICE void wgmma_fence(float (&d)[kSums]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  hold(d);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
ASSAY_DEVICE void wgmma_commit(WgmmaQueue&) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// All committed but the last kLeft are done; `d` is among those done.
template <int kLeft, int kSums>
ASSAY_DEVICE void wgmma_wait(WgmmaQueue&, float (&d)[kSums]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
  hold(d);
#endif
}

#define ASSAY_D8(i)                                                                           \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
// %64, %65: descriptors; %66: whether D is added.
#define ASSAY_WGMMA(instruction, modifiers)                                                                  \
  asm volatile(                                                                                              \
      "{\n.reg .pred added;\nsetp.ne.b32 added, %66, 0;\n" instruction                                       \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "    \
      "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, " \
      "%41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, " \
      "%61, %62, %63}, %64, %65, added, " modifiers ";\n}"                                                   \
      : ASSAY_D8(0), ASSAY_D8(8), ASSAY_D8(16), ASSAY_D8(24), ASSAY_D8(32), ASSAY_D8(40), ASSAY_D8(48),      \
        ASSAY_D8(56)                                                                                         \
      : "l"(a), "l"(b), "r"(added ? 1 : 0))

// The modifiers: factors 1 of A and B, and of 16-bit types that neither is transposed.
template <class T>
ASSAY_DEVICE void wgmma_m64n128(WgmmaQueue&, float (&d)[64], std::uint64_t a, std::uint64_t b, bool added) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (sizeof(T) == 1)
    ASSAY_WGMMA("wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3", "1, 1");
  else
    ASSAY_WGMMA("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", "1, 1, 0, 0");
#else
  __trap();  // planned for sm_90 only
#endif
}
template <class T>
ASSAY_DEVICE void wgmma_m64n128_down(WgmmaQueue&, float (&d)[64], std::uint64_t a, std::uint64_t b,
                                     bool added) {
  static_assert(sizeof(T) == 2);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  ASSAY_WGMMA("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", "1, 1, 0, 1");
#else
  __trap();
#endif
}
template <class T>
ASSAY_DEVICE void wgmma_m64n32(WgmmaQueue&, float (&d)[16], std::uint64_t a, std::uint64_t b, bool added) {
  static_assert(sizeof(T) == 2);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{\n.reg .pred added;\nsetp.ne.b32 added, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
      "%11, %12, %13, %14, %15}, %16, %17, added, 1, 1, 0, 0;\n}"
      : ASSAY_D8(0), ASSAY_D8(8)
      : "l"(a), "l"(b), "r"(added ? 1 : 0));
#else
  __trap();
#endif
}
#undef ASSAY_WGMMA
#undef ASSAY_D8

#else  // the emulator

inline std::uint32_t tile_address(const void* tile, Where where) {
  emulator::require_shared(tile, 1024, 1024, where);
  return static_cast<std::uint32_t>(static_cast<const std::byte*>(tile) - emulator::shared_memory());
}
inline SharedOperand shared_operand(const void* tile, Where where = Where::here()) {
  return {matrix_descriptor(tile_address(tile, where))};
}
inline DownOperand down_operand(const void* tiles, unsigned bytes_a_tile, Where where = Where::here()) {
  return {matrix_descriptor(tile_address(tiles, where), bytes_a_tile)};
}

using emulator::WgmmaQueue;

inline void shared_to_wgmma() {}
template <int kSums>
void wgmma_fence(float (&)[kSums]) {}
inline void wgmma_commit(WgmmaQueue& queue) {
  queue.commit();
}
template <int kLeft, int kSums>
void wgmma_wait(WgmmaQueue& queue, float (&)[kSums], Where where = Where::here()) {
  queue.wait(kLeft, where);
}
template <class T>
double element_value(const std::byte* at) {
  T element;
  std::memcpy(&element, at, sizeof element);
  return static_cast<double>(to_float(element));
}
template <class T>
void wgmma_m64n128(WgmmaQueue& queue, float (&d)[64], std::uint64_t a, std::uint64_t b, bool added,
                   Where where = Where::here()) {
  queue.begin({d, 64, a, b, false, added, sizeof(T), element_value<T>}, where);
}
template <class T>
void wgmma_m64n128_down(WgmmaQueue& queue, float (&d)[64], std::uint64_t a, std::uint64_t b, bool added,
                        Where where = Where::here()) {
  queue.begin({d, 64, a, b, true, added, sizeof(T), element_value<T>}, where);
}
template <class T>
void wgmma_m64n32(WgmmaQueue& queue, float (&d)[16], std::uint64_t a, std::uint64_t b, bool added,
                  Where where = Where::here()) {
  queue.begin({d, 16, a, b, false, added, sizeof(T), element_value<T>}, where);
}

#endif

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
