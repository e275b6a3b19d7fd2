// AVX-512: rotations and three-input logic are one instruction each, and 32 registers hold the whole message
// ring.
//
// Two widths. 16 lanes (zmm) is the fastest kernel there is when 16 files are at hand; 8 lanes (ymm) reaches
// about three quarters of that with half the lanes, since Intel cores have three vector ports for ymm and two
// for zmm.
#if defined(__x86_64__)

#include <immintrin.h>

#include "core/formats/hash/sha256_rounds.h"

namespace assay::sha256 {
namespace {

// Truth tables of vpternlogd for inputs (x, y, z) = (0xF0, 0xCC, 0xAA).
constexpr int kXor3 = 0x96, kChoose = 0xCA, kMajority = 0xE8;

struct Zmm {
  using Vec = __m512i;
  static constexpr int kLanes = 16;
  static ASSAY_INLINE Vec broadcast(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static ASSAY_INLINE Vec add(Vec a, Vec b) { return _mm512_add_epi32(a, b); }
  template <int n>
  static ASSAY_INLINE Vec rotate_right(Vec x) {
    return _mm512_ror_epi32(x, n);
  }
  template <int n>
  static ASSAY_INLINE Vec shift_right(Vec x) {
    return _mm512_srli_epi32(x, n);
  }
  static ASSAY_INLINE Vec xor3(Vec x, Vec y, Vec z) { return _mm512_ternarylogic_epi32(x, y, z, kXor3); }
  static ASSAY_INLINE Vec choose(Vec x, Vec y, Vec z) { return _mm512_ternarylogic_epi32(x, y, z, kChoose); }
  static ASSAY_INLINE Vec majority(Vec x, Vec y, Vec z) {
    return _mm512_ternarylogic_epi32(x, y, z, kMajority);
  }

  // Rows are lanes, columns words: a 16×16 transposition in four rounds of pairwise interleaving.
  static ASSAY_INLINE void transpose(Vec (&r)[16]) {
    Vec t[16];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) {
      t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
      t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {  // r[4i + j]: in 128-bit part p, word 4p + j of lanes 4i … 4i+3
      r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
      r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
      r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
      r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {  // the 128-bit parts, as a 4×4 transposition
      const Vec low01 = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88),
                high01 = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xDD);
      const Vec low23 = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88);
      const Vec high23 = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xDD);
      t[j] = _mm512_shuffle_i32x4(low01, low23, 0x88);
      t[8 + j] = _mm512_shuffle_i32x4(low01, low23, 0xDD);
      t[4 + j] = _mm512_shuffle_i32x4(high01, high23, 0x88);
      t[12 + j] = _mm512_shuffle_i32x4(high01, high23, 0xDD);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = t[i];
  }

  static ASSAY_INLINE void load_message(const std::byte* const* data, Vec (&w)[16]) {
    const Vec swap = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) w[i] = _mm512_loadu_si512(data[i]);
    transpose(w);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) w[i] = _mm512_shuffle_epi8(w[i], swap);
  }

  static ASSAY_INLINE void load_state(std::uint32_t* const* state, Vec (&s)[8]) {
    alignas(64) std::uint32_t words[8][16];
    for (int lane = 0; lane < 16; ++lane) {
      for (int i = 0; i < 8; ++i) words[i][lane] = state[lane][i];
    }
    for (int i = 0; i < 8; ++i) s[i] = _mm512_load_si512(words[i]);
  }
  static ASSAY_INLINE void store_state(std::uint32_t* const* state, const Vec (&s)[8]) {
    alignas(64) std::uint32_t words[8][16];
    for (int i = 0; i < 8; ++i) _mm512_store_si512(words[i], s[i]);
    for (int lane = 0; lane < 16; ++lane) {
      for (int i = 0; i < 8; ++i) state[lane][i] = words[i][lane];
    }
  }
};

}  // namespace
}  // namespace assay::sha256

#include "core/formats/hash/sha256_ymm.h"

namespace assay::sha256 {
namespace {

struct YmmTernary : Ymm {
  template <int n>
  static ASSAY_INLINE Vec rotate_right(Vec x) {
    return _mm256_ror_epi32(x, n);
  }
  static ASSAY_INLINE Vec xor3(Vec x, Vec y, Vec z) { return _mm256_ternarylogic_epi32(x, y, z, kXor3); }
  static ASSAY_INLINE Vec choose(Vec x, Vec y, Vec z) { return _mm256_ternarylogic_epi32(x, y, z, kChoose); }
  static ASSAY_INLINE Vec majority(Vec x, Vec y, Vec z) {
    return _mm256_ternarylogic_epi32(x, y, z, kMajority);
  }
};

}  // namespace

void compress_avx512_x16(std::uint32_t* const* state, const std::byte* const* data, std::size_t blocks) {
  compress_lanes<Zmm>(state, data, blocks);
}

void compress_avx512_x8(std::uint32_t* const* state, const std::byte* const* data, std::size_t blocks) {
  compress_lanes<YmmTernary>(state, data, blocks);
}

}  // namespace assay::sha256

#endif
