// Xet's rolling hash of eight places at once, a lane each, by AVX-512 VBMI.
//
// The table of 256 words is looked up a byte of the words at a time, of 64 places together: two halves of 128
// entries, of which the place's highest bit chooses one. Eight such planes become words by interleaving. That a
// hash is low enough is seldom, once in 64 KiB: only the least of 64 is kept, and where that is, those 64 are
// gone over again by themselves.
// Nothing of the standard library: what is compiled here may run on processors of that set alone.
#include "core/formats/xet/gear_kernels.h"
#include "core/formats/xet/gear_table.h"

#if defined(__AVX512VBMI__)

#include <immintrin.h>

namespace assay::xet {
namespace {

constexpr std::size_t kLanes = 8;

struct GearPlanes {
  alignas(64) std::uint8_t byte[8][256];
};
constexpr GearPlanes kPlanes = [] {
  GearPlanes planes{};
  for (int p = 0; p < 8; ++p) {
    for (int i = 0; i < 256; ++i) planes.byte[p][i] = static_cast<std::uint8_t>(kGearTable[i] >> (8 * p));
  }
  return planes;
}();

// Lane q of all four: to lane i of the q-th of `out`, which are two apart.
[[gnu::always_inline]] inline void transpose_lanes(const __m512i* in, __m512i* out) {
  const __m512i a = _mm512_shuffle_i64x2(in[0], in[1], 0x44), b = _mm512_shuffle_i64x2(in[0], in[1], 0xEE);
  const __m512i c = _mm512_shuffle_i64x2(in[2], in[3], 0x44), d = _mm512_shuffle_i64x2(in[2], in[3], 0xEE);
  out[0] = _mm512_shuffle_i64x2(a, c, 0x88);
  out[2] = _mm512_shuffle_i64x2(a, c, 0xDD);
  out[4] = _mm512_shuffle_i64x2(b, d, 0x88);
  out[6] = _mm512_shuffle_i64x2(b, d, 0xDD);
}

// 64 bytes of each stream; out[t] has bytes 8 t to 8 t + 7 of all: in its 128-bit lane l those of streams 2 l and
// 2 l + 1 by turns.
[[gnu::always_inline]] inline void load(const std::byte* at, std::size_t part, __m512i* out) {
  __m512i low[4], high[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const __m512i a = _mm512_loadu_si512(at + 2 * i * part), b = _mm512_loadu_si512(at + (2 * i + 1) * part);
    low[i] = _mm512_unpacklo_epi8(a, b);
    high[i] = _mm512_unpackhi_epi8(a, b);
  }
  transpose_lanes(low, out);
  transpose_lanes(high, out + 1);
}

// The table's words of 64 bytes: words[s] has those of the s-th byte of every stream.
[[gnu::always_inline]] inline void look_up(__m512i bytes, __m512i* words) {
  const __mmask64 upper = _mm512_movepi8_mask(bytes);
  __m512i planes[8], pairs[2][4], fours[4][2];
#pragma GCC unroll 8
  for (int p = 0; p < 8; ++p) {
    const auto* const table = reinterpret_cast<const __m512i*>(kPlanes.byte[p]);
    planes[p] = _mm512_mask_blend_epi8(upper, _mm512_permutex2var_epi8(table[0], bytes, table[1]),
                                       _mm512_permutex2var_epi8(table[2], bytes, table[3]));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    pairs[0][i] = _mm512_unpacklo_epi8(planes[2 * i], planes[2 * i + 1]);
    pairs[1][i] = _mm512_unpackhi_epi8(planes[2 * i], planes[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int half = i / 2, j = i % 2;
    fours[2 * half][j] = _mm512_unpacklo_epi16(pairs[half][2 * j], pairs[half][2 * j + 1]);
    fours[2 * half + 1][j] = _mm512_unpackhi_epi16(pairs[half][2 * j], pairs[half][2 * j + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    words[2 * i] = _mm512_unpacklo_epi32(fours[i][0], fours[i][1]);
    words[2 * i + 1] = _mm512_unpackhi_epi32(fours[i][0], fours[i][1]);
  }
}

std::uint64_t mark_word(std::uint64_t hash, const std::byte* at) {
  std::uint64_t found = 0;
  for (int i = 0; i < 64; ++i) {
    hash = (hash << 1) + kGearTable[static_cast<std::uint8_t>(at[i])];
    if (hash < kCutsBelow) found |= std::uint64_t{1} << i;
  }
  return found;
}

}  // namespace

void mark_eight_avx512(const std::byte* at, std::size_t part, std::uint64_t* hashes, std::uint64_t* marks) {
  __m512i hash = _mm512_loadu_si512(hashes);
  for (std::size_t from = 0; from < part; from += 64) {
    const __m512i before = hash;
    __m512i bytes[8], least = _mm512_set1_epi64(-1);
    load(at + from, part, bytes);
#pragma GCC unroll 8
    for (int t = 0; t < 8; ++t) {
      __m512i words[8];
      look_up(bytes[t], words);
      // Two bytes a step: what waits for the hash before it is one shift and one sum.
#pragma GCC unroll 4
      for (int s = 0; s < 8; s += 2) {
        const __m512i both = _mm512_add_epi64(_mm512_slli_epi64(words[s], 1), words[s + 1]);
        const __m512i first = _mm512_add_epi64(_mm512_slli_epi64(hash, 1), words[s]);
        hash = _mm512_add_epi64(_mm512_slli_epi64(hash, 2), both);
        least = _mm512_min_epu64(least, _mm512_min_epu64(first, hash));
      }
    }
    const __mmask8 some =
        _mm512_cmplt_epu64_mask(least, _mm512_set1_epi64(static_cast<long long>(kCutsBelow)));
    for (std::size_t i = 0; i < kLanes; ++i) marks[(i * part + from) / 64] = 0;
    if (some == 0) [[likely]]
      continue;
    std::uint64_t began[kLanes];
    _mm512_storeu_si512(began, before);
    for (std::size_t i = 0; i < kLanes; ++i) {
      if ((some >> i & 1) != 0) marks[(i * part + from) / 64] = mark_word(began[i], at + i * part + from);
    }
  }
  _mm512_storeu_si512(hashes, hash);
}

}  // namespace assay::xet

#endif
