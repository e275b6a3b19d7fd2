#include "kernels/cpu/gemm_f32.h"

#include <algorithm>
#include <cstring>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm_f32.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V32 = hn::Vec<F32>;

// Sums in registers: 2 × kTileRows of the 32 there are with AVX-512, of the 16 elsewhere.
constexpr std::size_t kTileRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
// Terms at a time, so that a tile's rows of x (kTileRows × 4 KiB) stay in the nearest caches.
constexpr std::size_t kTermsAtOnce = 1024;

std::size_t width() {
  return 2 * hn::Lanes(F32());
}

void pack(const float* const* rows, std::size_t count, std::size_t terms, float* panel) {
  const std::size_t across = width();
  constexpr std::size_t kStrip = 16;  // of k, so that both sides of the transposition stay in cache lines
  for (std::size_t k0 = 0; k0 < terms; k0 += kStrip) {
    const std::size_t k1 = std::min(terms, k0 + kStrip);
    for (std::size_t n = 0; n < across; ++n) {
      if (n < count) {
        for (std::size_t k = k0; k < k1; ++k) panel[k * across + n] = rows[n][k];
      } else {
        for (std::size_t k = k0; k < k1; ++k) panel[k * across + n] = 0;
      }
    }
  }
}

template <std::size_t Rows>
HWY_INLINE void tile(const float* HWY_RESTRICT x, std::size_t x_stride, const float* HWY_RESTRICT panel,
                     std::size_t panel_stride, std::size_t terms, float* HWY_RESTRICT sums) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 low[Rows], high[Rows];
  for (std::size_t i = 0; i < Rows; ++i) {
    low[i] = hn::LoadU(d, sums + i * 2 * lanes);
    high[i] = hn::LoadU(d, sums + i * 2 * lanes + lanes);
  }
  for (std::size_t k = 0; k < terms; ++k, panel += panel_stride) {
    const V32 w_low = hn::LoadU(d, panel), w_high = hn::LoadU(d, panel + lanes);
    for (std::size_t i = 0; i < Rows; ++i) {
      const V32 value = hn::Set(d, x[i * x_stride + k]);
      low[i] = hn::MulAdd(value, w_low, low[i]);
      high[i] = hn::MulAdd(value, w_high, high[i]);
    }
  }
  for (std::size_t i = 0; i < Rows; ++i) {
    hn::StoreU(low[i], d, sums + i * 2 * lanes);
    hn::StoreU(high[i], d, sums + i * 2 * lanes + lanes);
  }
}

void tile_of(std::size_t rows, const float* x, std::size_t x_stride, const float* panel,
             std::size_t panel_stride, std::size_t terms, float* sums) {
  switch (rows) {
    case 12: return tile<12>(x, x_stride, panel, panel_stride, terms, sums);
    case 6: return tile<6>(x, x_stride, panel, panel_stride, terms, sums);
    case 4: return tile<4>(x, x_stride, panel, panel_stride, terms, sums);
    case 2: return tile<2>(x, x_stride, panel, panel_stride, terms, sums);
    default: return tile<1>(x, x_stride, panel, panel_stride, terms, sums);
  }
}

// The tallest tile that `left` rows fill.
std::size_t tile_rows(std::size_t left) {
  for (const std::size_t rows : {std::size_t{12}, std::size_t{6}, std::size_t{4}, std::size_t{2}}) {
    if (rows <= kTileRows && rows <= left) return rows;
  }
  return 1;
}

void multiply(const GemmTile& t) {
  const std::size_t across = width(), stride = t.panel_stride != 0 ? t.panel_stride : across;
  HWY_ALIGN float sums[kTileRows * 2 * HWY_MAX_BYTES / sizeof(float)];
  for (std::size_t row = 0; row < t.tokens;) {
    const std::size_t rows = tile_rows(t.tokens - row);
    std::fill_n(sums, rows * across, 0.0F);
    for (std::size_t i = 0; t.accumulate && i < rows; ++i)
      std::memcpy(sums + i * across, t.y + (row + i) * t.y_stride, t.outputs * sizeof(float));
    for (std::size_t k = 0; k < t.terms; k += kTermsAtOnce) {
      tile_of(rows, t.x + row * t.x_stride + k, t.x_stride, t.panel + k * stride, stride,
              std::min(kTermsAtOnce, t.terms - k), sums);
    }
    for (std::size_t i = 0; i < rows; ++i)
      std::memcpy(t.y + (row + i) * t.y_stride, sums + i * across, t.outputs * sizeof(float));
    row += rows;
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(width);
HWY_EXPORT(pack);
HWY_EXPORT(multiply);

std::size_t panel_width() {
  return HWY_DYNAMIC_DISPATCH(width)();
}
void pack_panel(const float* const* rows, std::size_t count, std::size_t terms, float* panel) {
  HWY_DYNAMIC_DISPATCH(pack)(rows, count, terms, panel);
}
void multiply_panel(const GemmTile& tile) {
  HWY_DYNAMIC_DISPATCH(multiply)(tile);
}

}  // namespace assay::cpu
#endif
