// SHA-NI, two or four messages interleaved. One message alone is bound by the latency of sha256rnds2; a
// second one fits into its shadow on every CPU, a third and fourth only where two of these instructions run
// at once (Zen 4).
//
// The instructions keep the chaining words as {a,b,e,f} and {c,d,g,h}, high to low, and do two rounds each.
#if defined(__x86_64__)

#include <immintrin.h>

#include "core/formats/hash/sha256_rounds.h"

namespace assay::sha256 {
namespace {

struct Lane {
  __m128i abef, cdgh;
};

ASSAY_INLINE Lane load(const std::uint32_t* h) {
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(h)), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(h + 4)), 0x1B);
  return {_mm_alignr_epi8(badc, efgh, 8), _mm_blend_epi16(efgh, badc, 0xF0)};
}

ASSAY_INLINE void store(std::uint32_t* h, Lane lane) {
  const __m128i feba = _mm_shuffle_epi32(lane.abef, 0x1B), dchg = _mm_shuffle_epi32(lane.cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(h), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

template <int lanes>
ASSAY_INLINE void compress_interleaved(std::uint32_t* const* state, const std::byte* const* data,
                                       std::size_t blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  Lane s[lanes];
  for (int l = 0; l < lanes; ++l) s[l] = load(state[l]);
  for (std::size_t offset = 0; offset != blocks * 64; offset += 64) {
    __m128i w[lanes][4];  // a ring: w[t % 4] holds W[4t … 4t+3]
    Lane before[lanes];
    for (int l = 0; l < lanes; ++l) before[l] = s[l];
#pragma GCC unroll 16
    for (int t = 0; t < 16; ++t) {
      const __m128i k = _mm_load_si128(reinterpret_cast<const __m128i*>(kRound) + t);
#pragma GCC unroll 4
      for (int l = 0; l < lanes; ++l) {
        __m128i& words = w[l][t & 3];
        if (t < 4) {
          words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data[l] + offset) + t);
          words = _mm_shuffle_epi8(words, swap);
        } else {
          // W[t-16] + σ0(W[t-15]) by msg1, W[t-7] straddles two registers, σ1(W[t-2]) by msg2.
          const __m128i last = w[l][(t + 3) & 3];
          const __m128i seven = _mm_alignr_epi8(last, w[l][(t + 2) & 3], 4);
          const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(words, w[l][(t + 1) & 3]), seven);
          words = _mm_sha256msg2_epu32(sum, last);
        }
        const __m128i wk = _mm_add_epi32(words, k);
        s[l].cdgh = _mm_sha256rnds2_epu32(s[l].cdgh, s[l].abef, wk);
        s[l].abef = _mm_sha256rnds2_epu32(s[l].abef, s[l].cdgh, _mm_shuffle_epi32(wk, 0x0E));
      }
    }
    for (int l = 0; l < lanes; ++l) {
      s[l].abef = _mm_add_epi32(s[l].abef, before[l].abef);
      s[l].cdgh = _mm_add_epi32(s[l].cdgh, before[l].cdgh);
    }
  }
  for (int l = 0; l < lanes; ++l) store(state[l], s[l]);
}

}  // namespace

void compress_shani_x2(std::uint32_t* const* state, const std::byte* const* data, std::size_t blocks) {
  compress_interleaved<2>(state, data, blocks);
}

void compress_shani_x4(std::uint32_t* const* state, const std::byte* const* data, std::size_t blocks) {
  compress_interleaved<4>(state, data, blocks);
}

}  // namespace assay::sha256

#endif
