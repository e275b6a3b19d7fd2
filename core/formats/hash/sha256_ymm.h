// What eight lanes in 256-bit registers have in common, with AVX2 alone or with AVX-512VL.
// Included, like sha256_rounds.h, only by files compiled for such CPUs.
#pragma once

#include <immintrin.h>

#include "core/formats/hash/sha256_rounds.h"

namespace assay::sha256 {
namespace {

struct Ymm {
  using Vec = __m256i;
  static constexpr int kLanes = 8;
  static ASSAY_INLINE Vec broadcast(std::uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static ASSAY_INLINE Vec add(Vec a, Vec b) { return _mm256_add_epi32(a, b); }
  template <int n>
  static ASSAY_INLINE Vec shift_right(Vec x) {
    return _mm256_srli_epi32(x, n);
  }

  // Four words of all eight lanes, from bytes [16q, 16q + 16) of each block.
  static ASSAY_INLINE void load_quarter(const std::byte* const* data, int q, Vec* w) {
    const Vec swap = _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
    Vec r[4];  // r[i]: lane i in the low half, lane i + 4 in the high half
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data[i]) + q);
      const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data[i + 4]) + q);
      r[i] = _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1), swap);
    }
    const Vec low01 = _mm256_unpacklo_epi32(r[0], r[1]), high01 = _mm256_unpackhi_epi32(r[0], r[1]);
    const Vec low23 = _mm256_unpacklo_epi32(r[2], r[3]), high23 = _mm256_unpackhi_epi32(r[2], r[3]);
    w[0] = _mm256_unpacklo_epi64(low01, low23);
    w[1] = _mm256_unpackhi_epi64(low01, low23);
    w[2] = _mm256_unpacklo_epi64(high01, high23);
    w[3] = _mm256_unpackhi_epi64(high01, high23);
  }

  static ASSAY_INLINE void load_message(const std::byte* const* data, Vec (&w)[16]) {
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) load_quarter(data, q, w + std::ptrdiff_t{4} * q);
  }

  static ASSAY_INLINE void load_state(std::uint32_t* const* state, Vec (&s)[8]) {
    alignas(32) std::uint32_t words[8][8];
    for (int lane = 0; lane < 8; ++lane) {
      for (int i = 0; i < 8; ++i) words[i][lane] = state[lane][i];
    }
    for (int i = 0; i < 8; ++i) s[i] = _mm256_load_si256(reinterpret_cast<const Vec*>(words[i]));
  }
  static ASSAY_INLINE void store_state(std::uint32_t* const* state, const Vec (&s)[8]) {
    alignas(32) std::uint32_t words[8][8];
    for (int i = 0; i < 8; ++i) _mm256_store_si256(reinterpret_cast<Vec*>(words[i]), s[i]);
    for (int lane = 0; lane < 8; ++lane) {
      for (int i = 0; i < 8; ++i) state[lane][i] = words[i][lane];
    }
  }
};

}  // namespace
}  // namespace assay::sha256
