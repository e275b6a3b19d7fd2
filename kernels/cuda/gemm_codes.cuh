// Weights' codes to numbers, in registers: eight consecutive codes of a row, as 32-bit words, to eight
// floats.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

struct CodesE4m3 {
  static constexpr int kBytes = 1;
  ASSAY_DEVICE static void decode8(const std::uint32_t* words, float* out) {
    ASSAY_UNROLL
    for (int i = 0; i < 8; ++i)
      out[i] = to_float(e4m3{static_cast<std::uint8_t>(words[i / 4] >> 8 * (i % 4) & 0xFFu)});
  }
};

struct CodesS8 {
  static constexpr int kBytes = 1;
  ASSAY_DEVICE static void decode8(const std::uint32_t* words, float* out) {
    ASSAY_UNROLL
    for (int i = 0; i < 8; ++i)
      out[i] = static_cast<float>(static_cast<std::int8_t>(words[i / 4] >> 8 * (i % 4) & 0xFFu));
  }
};

struct CodesBf16 {
  static constexpr int kBytes = 2;
  ASSAY_DEVICE static void decode8(const std::uint32_t* words, float* out) {
    ASSAY_UNROLL
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = float_of(words[i] << 16);
      out[2 * i + 1] = float_of(words[i] & 0xFFFF0000u);
    }
  }
};

struct CodesF16 {
  static constexpr int kBytes = 2;
  ASSAY_DEVICE static void decode8(const std::uint32_t* words, float* out) {
    ASSAY_UNROLL
    for (int i = 0; i < 8; ++i)
      out[i] = to_float(f16{static_cast<std::uint16_t>(words[i / 2] >> 16 * (i % 2) & 0xFFFFu)});
  }
};

struct CodesF32 {
  static constexpr int kBytes = 4;
  ASSAY_DEVICE static void decode8(const std::uint32_t* words, float* out) {
    ASSAY_UNROLL
    for (int i = 0; i < 8; ++i) out[i] = float_of(words[i]);
  }
};

// x = leading + rest, the leading part being its first 8 bits: a bfloat16. By cutting, not rounding: the 24
// bits of a float32 are exactly three such parts, and none of them overflows. What is not finite is all in
// the leading part.
ASSAY_DEVICE float leading_part(float x) {
  const std::uint32_t bits = bits_of(x);
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return float_of(is_nan ? 0x7FC00000u : bits & 0xFFFF0000u);
}
ASSAY_DEVICE float rest_behind(float x, float leading) {
  const bool finite = (bits_of(x) & 0x7F800000u) != 0x7F800000u;
  return finite ? x - leading : 0.0f;
}

// Two bfloat16 numbers, held as floats, as one register: no rounding is left to do.
ASSAY_DEVICE std::uint32_t bf16_pair(float low, float high) {
  return bits_of(low) >> 16 | (bits_of(high) & 0xFFFF0000u);
}

// Four E4M3 codes as two registers of float16 of 2^-8 times their values: codes 0, 1 and codes 2, 3. Float16
// has the same fields, only wider, so that a code's seven bits move to the top of them, subnormals included.
inline constexpr float kHalfOfE4m3 = 0x1p-8f;
ASSAY_DEVICE std::uint32_t e4m3_pair_to_half(std::uint32_t in_bytes_1_and_3) {
  return (in_bytes_1_and_3 & 0x80008000u) | (in_bytes_1_and_3 & 0x7F007F00u) >> 1;
}
ASSAY_DEVICE void e4m3_to_half(std::uint32_t codes, std::uint32_t& low, std::uint32_t& high) {
  low = e4m3_pair_to_half((codes & 0xFFu) << 8 | (codes & 0xFF00u) << 16);
  high = e4m3_pair_to_half((codes & 0xFF0000u) >> 8 | (codes & 0xFF000000u));
  const std::uint32_t magnitudes = codes & 0x7F7F7F7Fu;
  if (((magnitudes + 0x01010101u) & 0x80808080u) == 0) return;
  // One of them is 0x7F: NaN.
  const auto nan = [&](unsigned i) { return (magnitudes >> 8 * i & 0xFFu) == 0x7Fu ? 0x7FFFu : 0u; };
  low |= nan(0) | nan(1) << 16;
  high |= nan(2) | nan(3) << 16;
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
