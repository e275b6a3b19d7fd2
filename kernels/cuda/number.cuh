// 16- and 8-bit numbers of kernels: what they are stored as, and how they become float and back.
//
//   bf16, f16      to nearest, ties to even; beyond the largest: infinity
//   e4m3, e5m2     to nearest, ties to even; beyond the largest: the largest ("satfinite"); NaN stays NaN
// Host and emulator compute by core/numeric's codecs, which the device follows bit for bit.
#pragma once

#include <cstdint>

#include "core/numeric/codec.h"
#include "kernels/cuda/device_macros.cuh"

namespace assay::cuda {

struct bf16 {
  std::uint16_t bits;
};
// A number of bfloat16 where it lies as float32: what matrices and caches of bfloat16 arithmetic hold.
struct wide_bf16 {
  float value;
};
struct f16 {
  std::uint16_t bits;
};
struct e4m3 {
  std::uint8_t bits;
};
struct e5m2 {
  std::uint8_t bits;
};

inline namespace ASSAY_TARGET {

ASSAY_DEVICE std::uint32_t bits_of(float x) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(x);
#else
  return std::bit_cast<std::uint32_t>(x);
#endif
}
ASSAY_DEVICE float float_of(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

ASSAY_DEVICE float to_float(float x) {
  return x;
}
ASSAY_DEVICE float to_float(bf16 x) {
  return float_of(static_cast<std::uint32_t>(x.bits) << 16);
}
ASSAY_DEVICE float to_float(f16 x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#else
  return decode(kF16, x.bits);
#endif
}
// An e4m3 number is a power of two times a float32 whose exponent field holds its own: subnormals included.
ASSAY_DEVICE float to_float(e4m3 x) {
  const std::uint32_t magnitude = x.bits & 0x7Fu, sign = (x.bits & 0x80u) << 24;
  if (magnitude == 0x7F) return float_of(sign | 0x7FC00000u);
  return float_of(sign | bits_of(float_of(magnitude << 20) * 0x1p120f));
}

// Two numbers in a register, the first in its lower half.
ASSAY_DEVICE std::uint32_t pack_bf16(float low, float high) {
#ifdef __CUDA_ARCH__
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#else
  return encode(kBF16, low, Overflow::special) | encode(kBF16, high, Overflow::special) << 16;
#endif
}
ASSAY_DEVICE std::uint32_t pack_f16(float low, float high) {
#ifdef __CUDA_ARCH__
  std::uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#else
  return encode(kF16, low, Overflow::special) | encode(kF16, high, Overflow::special) << 16;
#endif
}

template <class T>
ASSAY_DEVICE T from_float(float x);
template <>
ASSAY_DEVICE float from_float<float>(float x) {
  return x;
}
template <>
ASSAY_DEVICE bf16 from_float<bf16>(float x) {
  return {static_cast<std::uint16_t>(pack_bf16(x, 0))};
}
template <>
ASSAY_DEVICE f16 from_float<f16>(float x) {
  return {static_cast<std::uint16_t>(pack_f16(x, 0))};
}
template <>
ASSAY_DEVICE e4m3 from_float<e4m3>(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  std::uint16_t packed;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(0.0f), "f"(x));
  return {static_cast<std::uint8_t>(packed)};
#else
  constexpr FloatFormat format = kE4M3FN;
  return {static_cast<std::uint8_t>(encode(format, x, Overflow::saturate))};
#endif
}
template <>
ASSAY_DEVICE e5m2 from_float<e5m2>(float x) {
  constexpr FloatFormat format = kE5M2;
  return {static_cast<std::uint8_t>(encode(format, x, Overflow::saturate))};
}

// What a bfloat16 arithmetic stores of x (Arithmetic::round).
ASSAY_DEVICE float round_to_bf16(float x) {
  return to_float(from_float<bf16>(x));
}

// A float32 as tensor cores take it for tf32: 10 bits of mantissa, to nearest, ties away from zero.
ASSAY_DEVICE std::uint32_t to_tf32(float x) {
#ifdef __CUDA_ARCH__
  std::uint32_t y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
#else
  const std::uint32_t bits = bits_of(x);
  if ((bits & 0x7F800000u) == 0x7F800000u) return bits;
  return (bits + 0x1000u) & 0xFFFFE000u;
#endif
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
