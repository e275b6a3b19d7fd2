#include "kernels/cpu/bf16_rows_avx512.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/bf16_tile_avx512.h"
#include "kernels/cpu/fetch_ahead.h"

namespace assay::cpu {
namespace {

#include "kernels/cpu/unrolled.h"

// Of 32 registers beside a tile's sums its rows, the smallest number of each, and a token's terms take the rest.
constexpr std::size_t kMostSums = 24;
constexpr std::size_t kRowsByFew = 4, kFewTokens = 4, kRowsByMany = 3;

__m512 add_pairs(__m512 sum, __m512i x, __m512i w) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(w));
}
// The same in two steps, which keep subnormal numbers.
__m512 add_small_pairs(__m512 sum, __m512i x, __m512i w) {
  const auto second = [](__m512i v) {
    return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(-0x10000)));
  };
  const auto first = [](__m512i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)); };
  return _mm512_fmadd_ps(first(x), first(w), _mm512_fmadd_ps(second(x), second(w), sum));
}

// Of every 128 bits of four vectors their sums, side by side.
__m512 sums_of_four(const __m512* v) {
  const auto two = [](__m512 a, __m512 b) {
    return _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
  };
  const __m512d low = two(v[0], v[1]), high = two(v[2], v[3]);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(low, high)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(low, high)));
}
// The sum of each of 16 vectors.
inline __attribute__((always_inline)) __m512 sums_of(const __m512* v) {
  const auto halves = [](__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
  };
  return halves(halves(sums_of_four(v), sums_of_four(v + 4)),
                halves(sums_of_four(v + 8), sums_of_four(v + 12)));
}

// The first `Rows` rows by the first `Tokens` tokens. least: of each row the smallest number, twice its code without
// its sign, less 1, so that zero is the largest.
template <std::size_t Rows, std::size_t Tokens, bool Small>
void tile(const Bf16Rows& a, __m512i (&least)[Rows]) {
  constexpr std::size_t kSixteens = (Rows * Tokens + 15) / 16;
  __m512 sums[16 * kSixteens];
  unrolled<16 * kSixteens>([&](auto i) UNROLLED { sums[i] = _mm512_setzero_ps(); });
  unrolled<Rows>([&](auto r) UNROLLED { least[r] = _mm512_set1_epi16(-1); });
  __m512i w[Rows];
  const auto add = [&](std::size_t k) UNROLLED {
    unrolled<Rows>([&](auto r) UNROLLED {
      least[r] =
          _mm512_min_epu16(least[r], _mm512_sub_epi16(_mm512_slli_epi16(w[r], 1), _mm512_set1_epi16(1)));
    });
    unrolled<Tokens>([&](auto t) UNROLLED {
      const __m512i x = _mm512_loadu_si512(a.x + t * a.x_stride + k / 2);
      unrolled<Rows>([&](auto r) UNROLLED {
        __m512& sum = sums[t * Rows + r];
        sum = Small ? add_small_pairs(sum, x, w[r]) : add_pairs(sum, x, w[r]);
      });
    });
  };
  std::size_t k = 0;
  for (; k + kBf16Vector <= a.terms; k += kBf16Vector) {
    unrolled<Rows>([&](auto r) UNROLLED {
      const std::byte* at = a.w + r * a.row_bytes + 2 * k;
      w[r] = _mm512_loadu_si512(at);
      // The next tile's, and no nearer than memory is slow: the processor does not guess bursts like these.
      fetch_ahead(at + (std::max(Rows * a.row_bytes, kFetchedAhead) - kFetchedAhead), 64);
    });
    add(k);
  }
  if (k < a.terms) {
    const auto rest = static_cast<__mmask32>((std::uint64_t{1} << (a.terms - k)) - 1);
    unrolled<Rows>([&](auto r)
                       UNROLLED { w[r] = _mm512_maskz_loadu_epi16(rest, a.w + r * a.row_bytes + 2 * k); });
    add(k);
  }
  alignas(64) float results[16 * kSixteens];
  unrolled<kSixteens>([&](auto i) UNROLLED { _mm512_store_ps(results + 16 * i, sums_of(sums + 16 * i)); });
  for (std::size_t t = 0; t < Tokens; ++t)
    std::memcpy(a.y + t * a.y_stride, results + t * Rows, Rows * sizeof(float));
}

bool is_tiny(__m512i least) {
  const __m512i limit = _mm512_set1_epi16(static_cast<short>(2 * kLeastBf16Code - 1));
  return _mm512_cmplt_epu16_mask(least, limit) != 0;
}

// The part of `a` from this row and token on.
Bf16Rows from(Bf16Rows a, std::size_t row, std::size_t token) {
  a.w += row * a.row_bytes;
  a.x += token * a.x_stride;
  a.tiny += token;
  a.y += token * a.y_stride + row;
  return a;
}

template <std::size_t Rows, std::size_t Tokens>
void multiply(const Bf16Rows& a) {
  __m512i least[Rows];
  tile<Rows, Tokens, false>(a, least);
  for (std::size_t r = 0; r < Rows; ++r) {
    const bool tiny_row = is_tiny(least[r]);
    for (std::size_t t = 0; t < Tokens; ++t) {
      __m512i unused[1];
      if (tiny_row || a.tiny[t] != 0) tile<1, 1, true>(from(a, r, t), unused);
    }
  }
}

// Tokens beside a tile of so many rows.
template <std::size_t Rows>
constexpr std::size_t kTokensBeside = Rows == kRowsByFew ? kFewTokens : kMostSums / kRowsByMany;

template <std::size_t Rows, std::size_t Tokens = kTokensBeside<Rows>>
void multiply_by(std::size_t tokens, const Bf16Rows& a) {
  if (tokens >= Tokens) return multiply<Rows, Tokens>(a);
  if constexpr (Tokens > 1) multiply_by<Rows, Tokens - 1>(tokens, a);
}

template <std::size_t Rows>
void multiply_all(const Bf16Rows& a, std::size_t row) {
  for (std::size_t t = 0; t < a.tokens; t += kTokensBeside<Rows>)
    multiply_by<Rows>(a.tokens - t, from(a, row, t));
}

}  // namespace

void bf16_rows_avx512(const Bf16Rows& a) {
  std::size_t row = 0;
  // One token is as fast as W can be read, which is fastest in the order in which it lies.
  for (; a.tokens == 1 && row < a.count; ++row) multiply_all<1>(a, row);
  for (; a.tokens <= kFewTokens && row + kRowsByFew <= a.count; row += kRowsByFew)
    multiply_all<kRowsByFew>(a, row);
  for (; row + kRowsByMany <= a.count; row += kRowsByMany) multiply_all<kRowsByMany>(a, row);
  for (; row < a.count; ++row) multiply_all<1>(a, row);
}

}  // namespace assay::cpu
#else
namespace assay::cpu {

void bf16_rows_avx512(const Bf16Rows& /*rows*/) {}

}  // namespace assay::cpu
#endif
