#include "kernels/cpu/bf16_tile_avx512.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace assay::cpu {
namespace {

template <std::size_t Rows>
void tile(const std::int32_t* x, const std::int32_t* panel, std::size_t pairs, float* sums) {
  __m512 low[Rows], high[Rows];
  for (std::size_t i = 0; i < Rows; ++i) {
    low[i] = _mm512_loadu_ps(sums + i * kBf16PanelWidth);
    high[i] = _mm512_loadu_ps(sums + i * kBf16PanelWidth + 16);
  }
  for (std::size_t k = 0; k < pairs; ++k, panel += kBf16PanelWidth, x += Rows) {
    const auto w_low = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel));
    const auto w_high = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel + 16));
    for (std::size_t i = 0; i < Rows; ++i) {
      const auto value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(x[i]));
      low[i] = _mm512_dpbf16_ps(low[i], value, w_low);
      high[i] = _mm512_dpbf16_ps(high[i], value, w_high);
    }
  }
  for (std::size_t i = 0; i < Rows; ++i) {
    _mm512_storeu_ps(sums + i * kBf16PanelWidth, low[i]);
    _mm512_storeu_ps(sums + i * kBf16PanelWidth + 16, high[i]);
  }
}

}  // namespace

bool has_bf16_products() {
  static const bool has = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512bw");
  return has;
}

void bf16_tile_avx512(std::size_t rows, const std::int32_t* x, const std::int32_t* panel, std::size_t pairs,
                      float* sums) {
  switch (rows) {
    case 12: return tile<12>(x, panel, pairs, sums);
    case 6: return tile<6>(x, panel, pairs, sums);
    case 4: return tile<4>(x, panel, pairs, sums);
    case 2: return tile<2>(x, panel, pairs, sums);
    default: return tile<1>(x, panel, pairs, sums);
  }
}

}  // namespace assay::cpu
#else
namespace assay::cpu {

bool has_bf16_products() {
  return false;
}
void bf16_tile_avx512(std::size_t /*rows*/, const std::int32_t* /*x*/, const std::int32_t* /*panel*/,
                      std::size_t /*pairs*/, float* /*sums*/) {}

}  // namespace assay::cpu
#endif
