#include "kernels/cpu/gemm_bf16.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <span>

#include "core/numeric/codec_simd.h"
#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/bf16_rows_avx512.h"
#include "kernels/cpu/bf16_tile_avx512.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/team.h"
#include "kernels/cpu/tile_rows.h"
#include "refimpl/ops/w8a8.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm_bf16.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::ScalableTag<std::int32_t>;
using V32 = hn::Vec<F32>;
using VI = hn::Vec<I32>;

#include "kernels/cpu/copy_row.h"
#include "kernels/cpu/transpose.h"

constexpr std::size_t kTileRows = tallest_tile(HWY_TARGET <= HWY_AVX3);
constexpr std::size_t kPairsAtOnce = kTermsAtOnce / 2;

// The second and the first number of each pair.
HWY_INLINE V32 second(VI pairs) {
  return hn::BitCast(F32(), hn::And(pairs, hn::Set(I32(), -0x10000)));
}
HWY_INLINE V32 first(VI pairs) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(pairs));
}

template <std::size_t Rows>
HWY_INLINE void add_products(const float* HWY_RESTRICT x, V32 w_low, V32 w_high, V32 (&low)[Rows],
                             V32 (&high)[Rows]) {
  for (std::size_t i = 0; i < Rows; ++i) {
    const V32 value = hn::Set(F32(), x[i]);
    low[i] = hn::MulAdd(value, w_low, low[i]);
    high[i] = hn::MulAdd(value, w_high, high[i]);
  }
}

template <std::size_t Rows>
HWY_INLINE void tile(const float* HWY_RESTRICT x, const std::int32_t* HWY_RESTRICT panel, std::size_t pairs,
                     float* HWY_RESTRICT sums) {
  const F32 d;
  const I32 di;
  const std::size_t lanes = hn::Lanes(d);
  V32 low[Rows], high[Rows];
  for (std::size_t i = 0; i < Rows; ++i) {
    low[i] = hn::LoadU(d, sums + i * 2 * lanes);
    high[i] = hn::LoadU(d, sums + i * 2 * lanes + lanes);
  }
  for (std::size_t k = 0; k < pairs; ++k, panel += 2 * lanes, x += 2 * Rows) {
    add_products(x, second(hn::LoadU(di, panel)), second(hn::LoadU(di, panel + lanes)), low, high);
    add_products(x + Rows, first(hn::LoadU(di, panel)), first(hn::LoadU(di, panel + lanes)), low, high);
  }
  for (std::size_t i = 0; i < Rows; ++i) {
    hn::StoreU(low[i], d, sums + i * 2 * lanes);
    hn::StoreU(high[i], d, sums + i * 2 * lanes + lanes);
  }
}

HWY_INLINE void tile_of(std::size_t rows, const float* x, const std::int32_t* panel, std::size_t pairs,
                        float* sums) {
  switch (rows) {
    case 12: return tile<12>(x, panel, pairs, sums);
    case 6: return tile<6>(x, panel, pairs, sums);
    case 4: return tile<4>(x, panel, pairs, sums);
    case 2: return tile<2>(x, panel, pairs, sums);
    default: return tile<1>(x, panel, pairs, sums);
  }
}

// A tile's part of Bf16Tiles::values from its codes.
const float* widened(const std::int32_t* codes, std::size_t rows, std::size_t pairs, float* values) {
  for (std::size_t k = 0; k < pairs; ++k) {
    for (std::size_t i = 0; i < rows; ++i) {
      const auto pair = static_cast<std::uint32_t>(codes[k * rows + i]);
      values[2 * k * rows + i] = std::bit_cast<float>(pair & 0xFFFF0000U);
      values[(2 * k + 1) * rows + i] = std::bit_cast<float>(pair << 16);
    }
  }
  return values;
}

// To the second-level cache; returns the end.
const std::byte* fetch(const std::byte* from, std::size_t bytes) {
  if (from == nullptr) return nullptr;
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
  return from + bytes;
}

// Some outputs as the product reads them.
struct PairPanel {
  std::vector<std::int32_t> pairs;  // [pairs][width]
  bool by_instruction;
};

// Pairs [k, k + pairs) of a panel by all tokens. `ahead`: bytes to be fetched meanwhile, up to where it then is.
void multiply_part(const Bf16Tiles& x, const PairPanel& panel, std::size_t k, std::size_t pairs,
                   const std::byte*& ahead, float* HWY_RESTRICT sums) {
  const std::size_t width = 2 * hn::Lanes(F32());
  const std::int32_t* part = &panel.pairs[k * width];
  float values[2 * kPairsAtOnce * kTileRows];
  for (std::size_t token = 0; token < x.tokens;) {
    const std::size_t rows = rows_of_tile(kTileRows, x.tokens - token);
    const std::size_t at = token * x.pairs + k * rows;
    ahead = fetch(ahead, rows * pairs * width * sizeof *part / x.tokens);
    if (panel.by_instruction)
      bf16_tile_avx512(rows, &x.codes[at], part, pairs, &sums[token * width]);
    else
      tile_of(rows, x.values.empty() ? widened(&x.codes[at], rows, pairs, values) : &x.values[2 * at], part,
              pairs, &sums[token * width]);
    token += rows;
  }
}

// Neither zero nor at least kLeastBf16Code.
bool any_tiny(const std::int32_t* pairs, std::size_t count) {
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto pair = static_cast<std::uint32_t>(pairs[i]);
    const std::uint32_t low = pair & 0x7FFF, high = pair >> 16 & 0x7FFF;
    found |= static_cast<std::uint32_t>(low - 1 < kLeastBf16Code - 1) |
             static_cast<std::uint32_t>(high - 1 < kLeastBf16Code - 1);
  }
  return found != 0;
}

void make_panel(const std::int32_t* rows, std::size_t count, std::size_t pairs, bool in_pairs,
                PairPanel& panel) {
  const std::size_t width = 2 * hn::Lanes(F32());
  const std::int32_t* row_of[HWY_MAX_BYTES / sizeof(float) * 2];
  for (std::size_t n = 0; n < count; ++n) row_of[n] = rows + n * pairs;
  panel.pairs.resize(width * pairs);
  transpose_rows(row_of, count, pairs, width, panel.pairs.data());
  panel.by_instruction = in_pairs && width == kBf16PanelWidth && !any_tiny(rows, count * pairs);
}

// `rows` [count][pairs]: W's. `ahead`: as many bytes, which are read after these.
void multiply(const Bf16Tiles& x, const std::int32_t* rows, const std::byte* ahead, std::size_t count,
              float* HWY_RESTRICT y, std::size_t y_stride) {
  const std::size_t width = 2 * hn::Lanes(F32()), panels = (count + width - 1) / width;
  const auto outputs_of = [&](std::size_t p) { return std::min(width, count - p * width); };
  thread_local PairPanel panel[kPanelsAPiece];
  thread_local std::vector<float> sums;  // [panels][tokens][width]
  for (std::size_t p = 0; p < panels; ++p)
    make_panel(rows + p * width * x.pairs, outputs_of(p), x.pairs, !x.codes.empty(), panel[p]);
  sums.assign(panels * x.tokens * width, 0.0F);
  const auto sums_of = [&](std::size_t p, std::size_t token) {
    return &sums[(p * x.tokens + token) * width];
  };
  for (std::size_t k = 0; k < x.pairs; k += kPairsAtOnce) {
    for (std::size_t p = 0; p < panels; ++p)
      multiply_part(x, panel[p], k, std::min(kPairsAtOnce, x.pairs - k), ahead, sums_of(p, 0));
  }
  for (std::size_t p = 0; p < panels; ++p) {
    for (std::size_t token = 0; token < x.tokens; ++token)
      copy_row(sums_of(p, token), outputs_of(p), width, y + token * y_stride + p * width);
  }
}

// Tokens [first, first + count) of rows of pairs, where a tile begins: as numbers, or as they are.
void pack_pairs(const std::int32_t* rows, std::size_t first, std::size_t count, std::size_t pairs,
                float* values, std::int32_t* codes) {
  for (std::size_t token = first; token < first + count;) {
    const std::size_t tall = rows_of_tile(kTileRows, first + count - token);
    for (std::size_t i = 0; i < tall; ++i) {
      const std::int32_t* row = rows + (token - first + i) * pairs;
      float* to = codes == nullptr ? values + 2 * token * pairs + i : nullptr;
      for (std::size_t k = 0; codes == nullptr && k < pairs; ++k, to += 2 * tall) {
        const auto pair = static_cast<std::uint32_t>(row[k]);
        to[0] = std::bit_cast<float>(pair & 0xFFFF0000U);
        to[tall] = std::bit_cast<float>(pair << 16);
      }
      for (std::size_t k = 0; codes != nullptr && k < pairs; ++k)
        codes[token * pairs + k * tall + i] = row[k];
    }
    token += tall;
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(multiply);
HWY_EXPORT(pack_pairs);
HWY_EXPORT(any_tiny);

namespace {

// `rows` rows of `terms` BF16 codes, as they lie row_bytes apart, with a zero after an odd last one.
const std::int32_t* pairs_of(const std::byte* codes, std::size_t row_bytes, std::size_t rows,
                             std::size_t terms, std::vector<std::int32_t>& copy) {
  const std::size_t across = (terms + 1) / 2;
  const bool aligned = reinterpret_cast<std::uintptr_t>(codes) % alignof(std::int32_t) == 0;
  if (aligned && row_bytes == across * sizeof(std::int32_t) && row_bytes == 2 * terms)
    return reinterpret_cast<const std::int32_t*>(codes);
  copy.assign(rows * across, 0);
  for (std::size_t r = 0; r < rows; ++r) std::memcpy(&copy[r * across], codes + r * row_bytes, 2 * terms);
  return copy.data();
}

void encode_pairs(const float* values, std::size_t stride, std::size_t rows, std::size_t terms,
                  std::int32_t* pairs) {
  const std::size_t across = (terms + 1) / 2;
  for (std::size_t r = 0; r < rows; ++r, pairs += across) {
    if (terms % 2 != 0) pairs[across - 1] = 0;
    simd::encode(ElementType::BF16, {values + r * stride, terms}, Overflow::special,
                 reinterpret_cast<std::byte*>(pairs));
  }
}

}  // namespace

bool is_stored_bf16(const WeightView& weight) {
  return weight.kind == FormKind::plain && weight.type == ElementType::BF16 && weight.codes != nullptr;
}
bool takes_bf16(const WeightView& weight, const Arithmetic& arithmetic) {
  return arithmetic.bfloat16() && !is_w8a8(weight, arithmetic) && !weight.input_major;
}

Bf16Tiles::Bf16Tiles(const Matrix& x, int jobs)
    : tokens(x.rows()), terms(x.columns()), pairs((terms + 1) / 2) {
  constexpr std::size_t kTokens = 2 * kMostTileRows;  // a multiple of every tile's
  const auto over_tiles = [&](auto body) {
    team_for(jobs, (tokens + kTokens - 1) / kTokens,
             [&](std::size_t i) { body(i * kTokens, std::min(kTokens, tokens - i * kTokens)); });
  };
  const auto rows = std::make_unique_for_overwrite<std::int32_t[]>(tokens * pairs);
  std::atomic<bool> tiny = !multiplies_pairs();
  over_tiles([&](std::size_t first, std::size_t count) {
    std::int32_t* here = &rows[first * pairs];
    encode_pairs(x.row<float>(first), x.stride(), count, terms, here);
    if (!tiny && HWY_DYNAMIC_DISPATCH(any_tiny)(here, count * pairs)) tiny = true;
  });
  if (tiny)
    values.resize(2 * tokens * pairs);
  else
    codes.resize(tokens * pairs);
  over_tiles([&](std::size_t first, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(pack_pairs)
    (&rows[first * pairs], first, count, pairs, values.data(), codes.empty() ? nullptr : codes.data());
  });
}

bool multiplies_pairs() {
  return has_bf16_products() && panel_width() == kBf16PanelWidth;
}

Bf16Tokens::Bf16Tokens(const Matrix& x)
    : tokens(x.rows()),
      terms(x.columns()),
      stride((terms + kBf16Vector - 1) / kBf16Vector * kBf16Vector / 2),
      pairs(tokens * stride),
      tiny(tokens) {
  for (std::size_t t = 0; t < tokens; ++t) {
    std::int32_t* row = &pairs[t * stride];
    encode_pairs(x.row<float>(t), 0, 1, terms, row);
    tiny[t] = static_cast<unsigned char>(HWY_DYNAMIC_DISPATCH(any_tiny)(row, stride));
  }
}

void bf16_rows(const Bf16Tokens& x, const WeightView& weight, std::size_t first, std::size_t count,
               const Matrix& y) {
  bf16_rows_avx512({.w = weight.codes + first * weight.row_bytes,
                    .row_bytes = weight.row_bytes,
                    .terms = x.terms,
                    .count = count,
                    .x = x.pairs.data(),
                    .x_stride = x.stride,
                    .tokens = x.tokens,
                    .tiny = x.tiny.data(),
                    .y = y.row<float>(0) + first,
                    .y_stride = y.stride()});
}

void bf16_panel(const Bf16Tiles& x, const WeightView& weight, std::size_t first, std::size_t count,
                const Matrix& y) {
  thread_local std::vector<std::int32_t> copy;
  thread_local std::vector<float> values;
  const std::int32_t* rows = nullptr;
  if (is_stored_bf16(weight)) {
    rows = pairs_of(weight.codes + first * weight.row_bytes, weight.row_bytes, count, x.terms, copy);
  } else {
    values.resize(count * x.terms);
    copy.resize(count * x.pairs);
    decode_rows(weight, first, count, values.data());
    encode_pairs(values.data(), x.terms, count, x.terms, copy.data());
    rows = copy.data();
  }
  const std::byte* ahead = rows == copy.data() ? nullptr : weight.codes + (first + count) * weight.row_bytes;
  HWY_DYNAMIC_DISPATCH(multiply)(x, rows, ahead, count, y.row<float>(0) + first, y.stride());
}

void finish_bf16(const WeightView& bias, bool keep, const Matrix& y, int jobs) {
  std::vector<float> b(bias ? bias.columns : 0);
  if (bias) decode_rows(bias, 0, 1, b.data());
  round_to_bf16(b);
  for (std::size_t t = 0; bias && t < y.rows(); ++t) {
    for (std::size_t c = 0; c < b.size(); ++c) y.row<float>(t)[c] += b[c];
  }
  if (!keep) round_to_bf16(y, jobs);
}

}  // namespace assay::cpu
#endif
