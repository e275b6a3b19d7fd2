// What a stored code means, exactly: scalar codecs for every plain element type.
//
//   decode(kE4M3FN, 0x7E) == 448      encode(kE4M3FN, 1000, Overflow::saturate) == 0x7E
//
// A small float of e exponent and m mantissa bits, bias b, is
//   value = (-1)^sign * significand * 2^(max(exponent, 1) - b - m)
//   significand = mantissa + (exponent ? 2^m : 0)
// and what distinguishes the formats beyond (e, m, b) is only where NaN and Inf live: `Special`.
// Sources: IEEE 754-2019; OCP "8-bit Floating Point" 1.0 (E4M3, E5M2); OCP "Microscaling Formats" 1.0 (E8M0,
// E2M3, E3M2, E2M1); ml_dtypes' README (the FNUZ pair). codec_simd.h computes the same bits faster.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/numeric/element_type.h"

namespace assay {

static_assert(std::endian::native == std::endian::little, "stored elements are read in place, little-endian");

enum class Special : std::uint8_t {
  ieee,                  // the topmost exponent: Inf, then NaNs
  nan_only,              // "fn": no Inf; all ones is NaN
  nan_at_negative_zero,  // "fnuz": no Inf, no -0; its code is the one NaN
  none,                  // every code is a finite number
};

struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  Special special;

  constexpr std::uint32_t sign_code() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr std::uint32_t inf_code() const {
    return ((1u << exponent_bits) - 1) << mantissa_bits;
  }  // ieee only
  // The largest finite code. Codes of positive numbers are ordered as the numbers are.
  constexpr std::uint32_t max_code() const {
    if (special == Special::ieee) return inf_code() - 1;
    return special == Special::nan_only ? sign_code() - 2 : sign_code() - 1;
  }
  // The positive quiet NaN; without NaNs the largest number, as PTX `cvt.satfinite` to e2m1, e2m3, e3m2 has
  // it.
  constexpr std::uint32_t nan_code() const {
    switch (special) {
      case Special::ieee: return inf_code() | 1u << (mantissa_bits - 1);
      case Special::nan_only: return sign_code() - 1;
      case Special::nan_at_negative_zero: return sign_code();
      case Special::none: return max_code();
    }
    return 0;
  }
  constexpr bool operator==(const FloatFormat&) const = default;
  // Not by ==, which nvcc makes a trap of in device code: what is defaulted is the host's alone.
  constexpr bool is_bfloat16() const { return exponent_bits == 8 && mantissa_bits == 7; }
};

inline constexpr FloatFormat kF16{5, 10, 15, Special::ieee};
inline constexpr FloatFormat kBF16{8, 7, 127, Special::ieee};
inline constexpr FloatFormat kE5M2{5, 2, 15, Special::ieee};
inline constexpr FloatFormat kE4M3FN{4, 3, 7, Special::nan_only};
inline constexpr FloatFormat kE5M2FNUZ{5, 2, 16, Special::nan_at_negative_zero};
inline constexpr FloatFormat kE4M3FNUZ{4, 3, 8, Special::nan_at_negative_zero};
inline constexpr FloatFormat kE3M2{3, 2, 3, Special::none};
inline constexpr FloatFormat kE2M3{2, 3, 1, Special::none};
inline constexpr FloatFormat kE2M1{2, 1, 1, Special::none};

// Where |x| rounds beyond the largest finite number, and for an infinite x. NaN stays NaN under both.
enum class Overflow : std::uint8_t {
  special,   // Inf, or NaN in a format without Inf; saturates in one with neither (torch, ml_dtypes)
  saturate,  // the largest finite number (CUDA's satfinite)
};

// Exact. A NaN keeps its sign: BF16 is widened as it stands, F16 keeps its payload but comes out quiet (as
// F16C has it), 8 bits give the canonical quiet NaN.
constexpr float decode(const FloatFormat& format, std::uint32_t code);
// Rounds to nearest, ties to even. A NaN keeps its sign where it can and, in 16 bits, the top of its payload.
constexpr std::uint32_t encode(const FloatFormat& format, float x, Overflow overflow);

// E8M0 holds powers of two, 2^(code - 127), and one NaN: no zero, no sign.
enum class PowerRounding : std::uint8_t {
  // of the two neighbouring powers, in value; 1.5 * 2^k goes up, and so, in torch and ml_dtypes alike and
  // hence here, does everything between 2^-127 and 2^-126
  nearest,
  down,  // floor(log2 x), as the OCP specification scales blocks
  up,    // ceil(log2 x), as DeepSeek's ue8m0 scales
};
constexpr float decode_e8m0(std::uint8_t code);
// NaN for zero, negative, NaN and Inf; below 2^-127: 2^-127; beyond 2^127: NaN.
constexpr std::uint8_t encode_e8m0(float x, PowerRounding rounding);

// Values a block of `type` decodes to: its elements; two for each C64.
std::size_t values_per_block(ElementType type);

// Whole blocks of any type, GGUF's included; `stored` is a multiple of block_bytes and `out` has room for
// values_per_block each. To float, F64 and integers beyond 24 bits round to nearest even; to double, only
// integers beyond 53 bits do. BOOL and integers are their value. F4: the low nibble comes first. F6: element
// i of four is bits 6i..6i+5 of the three bytes, read little-endian.
void decode(ElementType type, std::span<const std::byte> stored, float* out);
void decode(ElementType type, std::span<const std::byte> stored, double* out);

// The reverse, for every plain type. Integers: nearest even, clamped to the range, NaN becomes 0. F8_E8M0:
// nearest. `values` fill whole blocks. Quantizing into GGUF blocks is not a codec; those types are refused
// (Error).
void encode(ElementType type, std::span<const float> values, Overflow overflow, std::byte* out);

// The layout behind an element type; nullptr for those that are none of the small floats.
const FloatFormat* float_format(ElementType type);

// -----------------------------------------------------------------------------------------------------------

constexpr double power_of_two(int exponent) {  // -1022 <= exponent <= 1023
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

constexpr float decode(const FloatFormat& f, std::uint32_t code) {
  if (f.is_bfloat16()) return std::bit_cast<float>(code << 16);  // the upper half of a float32
  const std::uint32_t magnitude = code & (f.sign_code() - 1);
  const bool negative = (code & f.sign_code()) != 0;
  const std::uint32_t sign_bit = negative ? 0x80000000u : 0u;
  const bool is_nan = f.special == Special::ieee                   ? magnitude > f.inf_code()
                      : f.special == Special::nan_only             ? magnitude == f.nan_code()
                      : f.special == Special::nan_at_negative_zero ? code == f.nan_code()
                                                                   : false;
  if (is_nan) {
    const std::uint32_t payload = f.mantissa_bits >= 7 ? magnitude << (23 - f.mantissa_bits) & 0x3FFFFFu : 0u;
    return std::bit_cast<float>(sign_bit | 0x7FC00000u | payload);
  }
  if (f.special == Special::ieee && magnitude == f.inf_code())
    return std::bit_cast<float>(sign_bit | 0x7F800000u);
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const std::uint32_t hidden = exponent != 0 ? 1u << f.mantissa_bits : 0u;
  const std::uint32_t significand = (magnitude & ((1u << f.mantissa_bits) - 1)) | hidden;
  const double value = significand * power_of_two((exponent != 0 ? exponent : 1) - f.bias - f.mantissa_bits);
  return static_cast<float>(negative ? -value : value);
}

// x = significand * 2^exponent with a 24-bit significand; a subnormal has fewer bits.
struct Scaled {
  std::uint32_t significand;
  int exponent;
};
constexpr Scaled scaled(std::uint32_t magnitude_bits) {
  const int biased = static_cast<int>(magnitude_bits >> 23);
  const std::uint32_t mantissa = magnitude_bits & 0x7FFFFFu;
  if (biased == 0) return {mantissa, -149};
  return {mantissa | 0x800000u, biased - 150};
}

// significand / 2^shift, to nearest, ties to even; shift > 0.
constexpr std::uint32_t shift_right_to_even(std::uint32_t significand, int shift) {
  if (shift > 25) return 0;  // 24 bits come to less than half of the last place
  const std::uint32_t kept = significand >> shift;
  const std::uint32_t lost = significand - (kept << shift);
  const std::uint32_t half = 1u << (shift - 1);
  const bool up = lost > half || (lost == half && kept % 2 != 0);
  return kept + (up ? 1u : 0u);
}

constexpr std::uint32_t encode(const FloatFormat& f, float x, Overflow overflow) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  const std::uint32_t sign = (bits >> 31) != 0 ? f.sign_code() : 0u;
  if (magnitude > 0x7F800000u) {
    if (f.special == Special::none || f.special == Special::nan_at_negative_zero) return f.nan_code();
    const bool keeps_payload = f.special == Special::ieee && f.mantissa_bits >= 7;
    return sign | f.nan_code() | (keeps_payload ? (magnitude & 0x7FFFFFu) >> (23 - f.mantissa_bits) : 0u);
  }
  std::uint32_t code = f.max_code() + 1;  // of an infinity
  if (f.is_bfloat16()) {                  // the upper half of a float32, and the lower one decides
    code = (magnitude + 0x7FFFu + (magnitude >> 16 & 1u)) >> 16;
  } else if (magnitude < 0x7F800000u) {
    // Codes count in steps of the last place of x's binade (of the lowest one, below it); rounding up out of
    // a binade lands on the first code of the next.
    const Scaled s = scaled(magnitude);
    const int unbiased = s.exponent + 23;
    const int exponent = unbiased + f.bias > 1 ? unbiased + f.bias : 1;
    const int shift = exponent - f.bias - f.mantissa_bits - s.exponent;
    const std::uint32_t steps = shift_right_to_even(s.significand, shift);
    code = (static_cast<std::uint32_t>(exponent - 1) << f.mantissa_bits) + steps;
  }
  if (code > f.max_code()) {
    if (overflow == Overflow::saturate || f.special == Special::none) return sign | f.max_code();
    if (f.special == Special::nan_at_negative_zero) return f.nan_code();
    return sign | (f.special == Special::ieee ? f.inf_code() : f.nan_code());
  }
  if (f.special == Special::nan_at_negative_zero && code == 0) return 0;
  return sign | code;
}

constexpr float decode_e8m0(std::uint8_t code) {
  if (code == 0xFF) return std::bit_cast<float>(0x7FC00000u);
  return static_cast<float>(power_of_two(code - 127));
}

constexpr std::uint8_t encode_e8m0(float x, PowerRounding rounding) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if (bits == 0 || bits >= 0x7F800000u) return 0xFF;  // also every negative number, by its sign bit
  if (bits <= 0x00400000u) return 0;
  std::uint32_t code = bits >> 23;
  const std::uint32_t mantissa = bits & 0x7FFFFFu;
  if (code == 0) return rounding == PowerRounding::down ? 0 : 1;  // between 2^-127 and 2^-126
  if (rounding == PowerRounding::up) code += mantissa != 0 ? 1 : 0;
  if (rounding == PowerRounding::nearest) code += mantissa >= 0x400000u ? 1 : 0;
  return static_cast<std::uint8_t>(code);
}

}  // namespace assay
