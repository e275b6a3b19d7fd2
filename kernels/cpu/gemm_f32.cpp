#include "kernels/cpu/gemm_f32.h"

#include <algorithm>
#include <cstring>

#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/tile_rows.h"
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

#include "kernels/cpu/copy_row.h"
#include "kernels/cpu/transpose.h"

constexpr std::size_t kTileRows = tallest_tile(HWY_TARGET <= HWY_AVX3);

std::size_t width() {
  return 2 * hn::Lanes(F32());
}

void pack(const float* const* rows, std::size_t count, std::size_t terms, float* panel) {
  transpose_rows(rows, count, terms, width(), panel);
}

// x[i, k] lies at x + i · row_step + k · term_step.
template <std::size_t Rows, bool Packed>
HWY_INLINE void tile(const float* HWY_RESTRICT x, std::size_t x_stride, const float* HWY_RESTRICT panel,
                     std::size_t panel_stride, std::size_t terms, float* HWY_RESTRICT sums) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t row_step = Packed ? 1 : x_stride, term_step = Packed ? Rows : 1;
  V32 low[Rows], high[Rows];
  for (std::size_t i = 0; i < Rows; ++i) {
    low[i] = hn::LoadU(d, sums + i * 2 * lanes);
    high[i] = hn::LoadU(d, sums + i * 2 * lanes + lanes);
  }
  for (std::size_t k = 0; k < terms; ++k, panel += panel_stride, x += term_step) {
    const V32 w_low = hn::LoadU(d, panel), w_high = hn::LoadU(d, panel + lanes);
    for (std::size_t i = 0; i < Rows; ++i) {
      const V32 value = hn::Set(d, x[i * row_step]);
      low[i] = hn::MulAdd(value, w_low, low[i]);
      high[i] = hn::MulAdd(value, w_high, high[i]);
    }
  }
  for (std::size_t i = 0; i < Rows; ++i) {
    hn::StoreU(low[i], d, sums + i * 2 * lanes);
    hn::StoreU(high[i], d, sums + i * 2 * lanes + lanes);
  }
}

template <bool Packed>
HWY_INLINE void tile_of(std::size_t rows, const float* x, std::size_t x_stride, const float* panel,
                        std::size_t panel_stride, std::size_t terms, float* sums) {
  switch (rows) {
    case 12: return tile<12, Packed>(x, x_stride, panel, panel_stride, terms, sums);
    case 6: return tile<6, Packed>(x, x_stride, panel, panel_stride, terms, sums);
    case 4: return tile<4, Packed>(x, x_stride, panel, panel_stride, terms, sums);
    case 2: return tile<2, Packed>(x, x_stride, panel, panel_stride, terms, sums);
    default: return tile<1, Packed>(x, x_stride, panel, panel_stride, terms, sums);
  }
}

template <bool Packed>
HWY_INLINE void multiply_as(const GemmTile& t) {
  const std::size_t across = width(), stride = t.panel_stride != 0 ? t.panel_stride : across;
  HWY_ALIGN float sums[kTileRows * 2 * HWY_MAX_BYTES / sizeof(float)];
  for (std::size_t k = 0; k < t.terms || k == 0; k += kTermsAtOnce) {
    for (std::size_t row = 0; row < t.tokens;) {
      const std::size_t rows = rows_of_tile(kTileRows, t.tokens - row);
      const bool fresh = k == 0 && !t.accumulate;
      if (fresh || t.outputs < across) std::fill_n(sums, rows * across, 0.0F);
      for (std::size_t i = 0; !fresh && i < rows; ++i)
        copy_row(t.y + (row + i) * t.y_stride, t.outputs, across, sums + i * across);
      const float* x = Packed ? t.x + row * t.terms + k * rows : t.x + row * t.x_stride + k;
      tile_of<Packed>(rows, x, t.x_stride, t.panel + k * stride, stride, std::min(kTermsAtOnce, t.terms - k),
                      sums);
      for (std::size_t i = 0; i < rows; ++i)
        copy_row(sums + i * across, t.outputs, across, t.y + (row + i) * t.y_stride);
      row += rows;
    }
  }
}

void multiply(const GemmTile& t) {
  t.x_packed ? multiply_as<true>(t) : multiply_as<false>(t);
}

void pack_tokens(const float* x, std::size_t stride, std::size_t tokens, std::size_t terms, float* packed) {
  for (std::size_t token = 0; token < tokens;) {
    const std::size_t rows = rows_of_tile(kTileRows, tokens - token);
    float* to = packed + token * terms;
    for (std::size_t i = 0; i < rows; ++i) {
      const float* row = x + (token + i) * stride;
      for (std::size_t k = 0; k < terms; ++k) to[k * rows + i] = row[k];
    }
    token += rows;
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(width);
HWY_EXPORT(pack);
HWY_EXPORT(multiply);
HWY_EXPORT(pack_tokens);

std::size_t panel_width() {
  return HWY_DYNAMIC_DISPATCH(width)();
}
void pack_panel(const float* const* rows, std::size_t count, std::size_t terms, float* panel) {
  HWY_DYNAMIC_DISPATCH(pack)(rows, count, terms, panel);
}
void pack_tokens(const float* x, std::size_t stride, std::size_t tokens, std::size_t terms, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_tokens)(x, stride, tokens, terms, packed);
}
void multiply_panel(const GemmTile& tile) {
  HWY_DYNAMIC_DISPATCH(multiply)(tile);
}

}  // namespace assay::cpu
#endif
