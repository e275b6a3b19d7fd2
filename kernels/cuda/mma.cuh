// Tensor cores: fragments into registers, and D = A·B + D of one warp.
//
//   mma_m16n8k16<bf16>(d, a, b)     16×16 by 16×8; also f16; float32 sums
//   mma_m16n8k32<e4m3>(d, a, b)     16×32 by 32×8; float32 sums; sm_89 and up
//   mma_m16n8k32<std::int8_t>(d, a, b)   the same in integers
//   mma_m16n8k8_tf32(d, a, b)       16×8 by 8×8
//
// A lies by rows, B by columns: element (k, n) of B is next to (k + 1, n), as x · Wᵀ has it. With
// group = lane / 4 and t = lane % 4, a lane holds (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating
// point type", "… mma.m16n8k32" for .e4m3 and .s8, "… mma.m16n8k8" for .tf32):
//
//               a[0]           a[1]          a[2]            a[3]           b[0]           b[1]
//   16 bits  (g, 2t+{0,1})  (g+8, same)  (g, 2t+8+{0,1})  (g+8, same)   (2t+{0,1}, g)  (2t+8+{0,1}, g)
//    8 bits  (g, 4t+{0…3})  (g+8, same)  (g, 4t+16+…)     (g+8, same)   (4t+{0…3}, g)  (4t+16+…, g)
//   tf32     (g, t)         (g+8, t)     (g, t+4)         (g+8, t+4)    (t, g)         (t+4, g)
//
//   d[0], d[1]: (g, 2t), (g, 2t+1);  d[2], d[3]: (g+8, 2t), (g+8, 2t+1)
//
// ldmatrix (PTX ISA, "ldmatrix") reads 8×8 matrices of 16-bit elements, matrix i's row r at the address that
// lane 8i + r gives; lane l then holds in r[i] elements (l / 4, 2(l % 4) + {0, 1}), or with _trans elements
// (2(l % 4) + {0, 1}, l / 4). Rows are 16 bytes, aligned so.
#pragma once

#include "kernels/cuda/device.cuh"

#ifdef __CUDACC__

namespace assay::cuda {
inline namespace ASSAY_TARGET {

ASSAY_DEVICE void ldmatrix_x4(std::uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
ASSAY_DEVICE void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
ASSAY_DEVICE void ldmatrix_x2(std::uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}
ASSAY_DEVICE void ldmatrix_x2_trans(std::uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}

#define ASSAY_MMA(instruction, constraint)                                                    \
  asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : constraint(d[0]), constraint(d[1]), constraint(d[2]), constraint(d[3])       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <class T>
ASSAY_DEVICE void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]);
template <>
ASSAY_DEVICE void mma_m16n8k16<bf16>(float (&d)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2]) {
  ASSAY_MMA("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "+f");
}
template <>
ASSAY_DEVICE void mma_m16n8k16<f16>(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  ASSAY_MMA("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "+f");
}

template <class T, class Sum>
ASSAY_DEVICE void mma_m16n8k32(Sum (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]);
template <>
ASSAY_DEVICE void mma_m16n8k32<e4m3, float>(float (&d)[4], const std::uint32_t (&a)[4],
                                            const std::uint32_t (&b)[2]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
  ASSAY_MMA("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "+f");
#else
  __trap();  // no kernel that multiplies e4m3 is planned for sm_80
#endif
}
template <>
ASSAY_DEVICE void mma_m16n8k32<std::int8_t, std::int32_t>(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                                          const std::uint32_t (&b)[2]) {
  ASSAY_MMA("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "+r");
}

ASSAY_DEVICE void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  ASSAY_MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "+f");
}
#undef ASSAY_MMA

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda

#else
#include "kernels/cuda/mma_emulated.cuh"
#endif
