#include "kernels/cpu/row_dot_tokens.h"

#include <algorithm>
#include <cstring>

#include "core/numeric/gguf_layout.h"
#include "core/numeric/simd_disabled_targets.h"
#include "kernels/operands/int16.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_dot_tokens.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/block_codes.h"

using F32 = hn::ScalableTag<float>;
using V32 = hn::Vec<F32>;

#include "kernels/cpu/float_elements.h"
#include "kernels/cpu/hold.h"

// Four sums of each row and token stay in registers, of which AVX-512 has 32 and others 16.
constexpr std::size_t kRowsOfTile = HWY_TARGET <= HWY_AVX3 ? 2 : 1, kTokensOfTile = 3;

template <std::size_t Rows, std::size_t Tokens>
struct Tile {
  const float* w[Rows];
  const float* x[Tokens];
};
template <std::size_t Rows, std::size_t Tokens>
struct TileSums {
  V32 of[Rows][Tokens];
  HWY_INLINE void clear() {
    for (auto& row : of) {
      for (V32& sum : row) sum = hn::Zero(F32());
    }
  }
};

template <std::size_t Rows, std::size_t Tokens>
HWY_INLINE void add_products(const Tile<Rows, Tokens>& tile, std::size_t k, TileSums<Rows, Tokens>& sums) {
  const F32 d;
  V32 w[Rows];
  for (std::size_t r = 0; r < Rows; ++r) {
    w[r] = hn::LoadU(d, tile.w[r] + k);
    hold(w[r]);
  }
  for (std::size_t t = 0; t < Tokens; ++t) {
    V32 x = hn::LoadU(d, tile.x[t] + k);
    if constexpr (Rows > 1) hold(x);
    for (std::size_t r = 0; r < Rows; ++r) sums.of[r][t] = hn::MulAdd(w[r], x, sums.of[r][t]);
  }
}

// What does not fill a vector, padded with zeros.
template <std::size_t Rows, std::size_t Tokens>
HWY_INLINE void add_rest(const Tile<Rows, Tokens>& tile, std::size_t k, std::size_t count,
                         TileSums<Rows, Tokens>& sums) {
  constexpr std::size_t kLanes = HWY_MAX_BYTES / sizeof(float);
  HWY_ALIGN float rest[Rows + Tokens][kLanes] = {};
  Tile<Rows, Tokens> padded;
  for (std::size_t r = 0; r < Rows; ++r) {
    std::memcpy(rest[r], tile.w[r] + k, count * sizeof(float));
    padded.w[r] = rest[r];
  }
  for (std::size_t t = 0; t < Tokens; ++t) {
    std::memcpy(rest[Rows + t], tile.x[t] + k, count * sizeof(float));
    padded.x[t] = rest[Rows + t];
  }
  add_products(padded, 0, sums);
}

// In the order of dot_vectors (row_dot.cpp): four sums by turns, what is left of vectors in the first, the rest in the
// second.
template <std::size_t Rows, std::size_t Tokens>
struct FourSums {
  TileSums<Rows, Tokens> a, b, c, e;

  HWY_INLINE void clear() { a.clear(), b.clear(), c.clear(), e.clear(); }
  // Terms [k, end), where four vectors begin; whole fours of vectors, or the last ones.
  HWY_INLINE void add(const Tile<Rows, Tokens>& tile, std::size_t k, std::size_t end) {
    const std::size_t lanes = hn::Lanes(F32());
    for (; k + 4 * lanes <= end; k += 4 * lanes) {
      add_products(tile, k, a);
      add_products(tile, k + lanes, b);
      add_products(tile, k + 2 * lanes, c);
      add_products(tile, k + 3 * lanes, e);
    }
    for (; k + lanes <= end; k += lanes) add_products(tile, k, a);
    if (k < end) add_rest(tile, k, end - k, b);
  }
  HWY_INLINE TileSums<Rows, Tokens> sum() const {
    TileSums<Rows, Tokens> sums;
    for (std::size_t r = 0; r < Rows; ++r) {
      for (std::size_t t = 0; t < Tokens; ++t)
        sums.of[r][t] = hn::Add(hn::Add(a.of[r][t], b.of[r][t]), hn::Add(c.of[r][t], e.of[r][t]));
    }
    return sums;
  }
};

// A group of codes, in the order of add_codes (row_dot.cpp).
template <std::size_t Rows, std::size_t Tokens>
HWY_INLINE TileSums<Rows, Tokens> sums_of_group(const Tile<Rows, Tokens>& tile, std::size_t k) {
  TileSums<Rows, Tokens> sums;
  sums.clear();
  for (std::size_t i = 0; i < kInt16Group; i += hn::Lanes(F32())) add_products(tile, k + i, sums);
  return sums;
}

// Rows that are one block: the sums wait in `kept` between two ranges of terms.
template <std::size_t Rows, std::size_t Tokens>
HWY_INLINE void add_to_sums(const Tile<Rows, Tokens>& tile, std::size_t k, std::size_t end,
                            FourSums<Rows, Tokens>& kept) {
  FourSums<Rows, Tokens> sums = kept;
  sums.add(tile, k, end);
  kept = sums;
}

// Rows of several blocks, each under a scale; `scales` of the first of these rows.
template <bool Groups, std::size_t Rows, std::size_t Tokens>
HWY_INLINE void add_to_totals(const DecodedRows& rows, const float* scales, const Tile<Rows, Tokens>& tile,
                              std::size_t k, std::size_t end, TileSums<Rows, Tokens>& kept) {
  TileSums<Rows, Tokens> totals = kept;
  for (; k < end; k += rows.block) {
    TileSums<Rows, Tokens> sums;
    if constexpr (Groups) {
      sums = sums_of_group(tile, k);
    } else {
      FourSums<Rows, Tokens> four;
      four.clear();
      four.add(tile, k, std::min(k + rows.block, rows.terms));
      sums = four.sum();
    }
    for (std::size_t i = 0; i < Rows; ++i) {
      const V32 scale = hn::Set(F32(), scales[i * rows.blocks() + k / rows.block]);
      for (std::size_t t = 0; t < Tokens; ++t)
        totals.of[i][t] = hn::MulAdd(sums.of[i][t], scale, totals.of[i][t]);
    }
  }
  kept = totals;
}

// Terms at a time, a multiple of four vectors: those of a tile's tokens stay in the nearest cache meanwhile.
constexpr std::size_t kTermsOfTile = 1024;
// Rows whose sums wait at a time.
constexpr std::size_t kRowsWaiting = 32;

// Rows [first, first + count), at most kRowsWaiting, by `Tokens` tokens; Rows of them at a time, which divide count.
template <bool Groups, std::size_t Rows, std::size_t Tokens>
HWY_INLINE void dot_rows(const DecodedRows& rows, std::size_t first, std::size_t count, const float* const* x,
                         float* const* y) {
  const F32 d;
  const bool one_block = rows.block >= rows.terms && !Groups;
  FourSums<Rows, Tokens> sums[kRowsWaiting / Rows];
  for (std::size_t i = 0; i < count / Rows; ++i) sums[i].clear();
  const std::size_t step =
      one_block ? kTermsOfTile : (kTermsOfTile + rows.block - 1) / rows.block * rows.block;
  Tile<Rows, Tokens> tile;
  for (std::size_t t = 0; t < Tokens; ++t) tile.x[t] = x[t];
  for (std::size_t k = 0; k < rows.terms; k += step) {
    const std::size_t end = std::min(k + step, rows.terms);
    for (std::size_t r = 0; r < count; r += Rows) {
      for (std::size_t i = 0; i < Rows; ++i) tile.w[i] = rows.values.data() + (first + r + i) * rows.terms;
      if (one_block)
        add_to_sums(tile, k, end, sums[r / Rows]);
      else
        add_to_totals<Groups>(rows, rows.scales.data() + (first + r) * rows.blocks(), tile, k, end,
                              sums[r / Rows].a);
    }
  }
  for (std::size_t r = 0; r < count; ++r) {
    const FourSums<Rows, Tokens>& four = sums[r / Rows];
    const TileSums<Rows, Tokens> of_rows = one_block ? four.sum() : four.a;
    for (std::size_t t = 0; t < Tokens; ++t) {
      V32 sum = of_rows.of[r % Rows][t];
      if (one_block && !rows.scales.empty())
        sum = hn::MulAdd(sum, hn::Set(d, rows.scales[first + r]), hn::Zero(d));
      y[t][first + r] = hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }
}

// All rows by `Tokens` tokens.
template <bool Groups, std::size_t Tokens>
HWY_NOINLINE void dot_tokens(const DecodedRows& rows, std::size_t count, const float* const* x,
                             float* const* y) {
  for (std::size_t first = 0; first < count; first += kRowsWaiting) {
    const std::size_t here = std::min(kRowsWaiting, count - first), last = here % kRowsOfTile;
    dot_rows<Groups, kRowsOfTile, Tokens>(rows, first, here - last, x, y);
    if (last != 0) dot_rows<Groups, 1, Tokens>(rows, first + here - last, last, x, y);
  }
}

template <bool Groups>
void dot_all(const DecodedRows& rows, std::size_t count, std::span<const float* const> x,
             std::span<float* const> y) {
  std::size_t t = 0;
  for (; t + kTokensOfTile <= x.size(); t += kTokensOfTile)
    dot_tokens<Groups, kTokensOfTile>(rows, count, &x[t], &y[t]);
  if (x.size() - t == 2) dot_tokens<Groups, 2>(rows, count, &x[t], &y[t]);
  if (x.size() - t == 1) dot_tokens<Groups, 1>(rows, count, &x[t], &y[t]);
}

// `groups`: of integers (kernels/operands/int16.h).
void dot_panel(const DecodedRows& rows, bool groups, std::size_t count, std::span<const float* const> x,
               std::span<float* const> y) {
  groups ? dot_all<true>(rows, count, x, y) : dot_all<false>(rows, count, x, y);
}

// A row of BF16 or F16 as integers and their scales, as add_codes has them.
template <class Element>
void round_row_of(const std::byte* w, std::size_t terms, float* codes, float* scales) {
  const F32 d;
  for (std::size_t k = 0; k < terms; k += kInt16Group, w += kInt16Group * Element::kBytes) {
    const GroupScale scale = scale_of<Element>(w);
    for (std::size_t i = 0; i < kInt16Group; i += hn::Lanes(d))
      hn::StoreU(hn::Round(hn::Mul(Element::load(w + i * Element::kBytes), scale.inverse)), d, codes + k + i);
    *scales++ = hn::GetLane(scale.scale);
  }
}
void round_row(ElementType type, const std::byte* w, std::size_t terms, float* codes, float* scales) {
  type == ElementType::BF16 ? round_row_of<AsBF16>(w, terms, codes, scales)
                            : round_row_of<AsF16>(w, terms, codes, scales);
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(dot_panel);
HWY_EXPORT(round_row);

namespace {

// Of rows [first, first + count).
void read_rounded(const WeightView& weight, std::size_t first, std::size_t count, DecodedRows& rows) {
  rows.block = kInt16Group;
  rows.scales.resize(count * rows.blocks());
  for (std::size_t r = 0; r < count; ++r) HWY_DYNAMIC_DISPATCH(round_row)
  (weight.type, weight.codes + (first + r) * weight.row_bytes, rows.terms,
   rows.values.data() + r * rows.terms, rows.scales.data() + r * rows.blocks());
}

void read_scaled(const WeightView& weight, std::size_t first, std::size_t count, DecodedRows& rows) {
  rows.block = weight.block_columns;
  rows.scales.resize(count * rows.blocks());
  decode_codes(weight, first, count, rows.values.data());
  std::vector<float> scales(weight.scale_columns);
  for (std::size_t r = 0; r < count; ++r) {
    if (r == 0 || (weight.first_row + first + r) % weight.block_rows == 0)
      decode_scales(weight, first + r, scales.data());
    std::copy_n(scales.begin(), rows.blocks(),
                rows.scales.begin() + static_cast<std::ptrdiff_t>(r * rows.blocks()));
  }
}

}  // namespace

void row_dots(const WeightView& weight, std::size_t first, std::size_t count, std::span<const DotInput> x,
              const Matrix& y) {
  const bool rounded = x.front().int16;
  if (x.size() == 1 || (!rounded && has_integer_rows(weight))) {
    for (std::size_t t = 0; t < x.size(); ++t) row_dots(weight, first, count, x[t], y.row<float>(t) + first);
    return;
  }
  thread_local DecodedRows rows;
  rows.terms = rows.block = weight.columns;
  rows.values.resize(count * rows.terms);
  rows.scales.clear();
  if (rounded)
    read_rounded(weight, first, count, rows);
  else if (weight.kind == FormKind::scaled && reads_directly(weight))
    read_scaled(weight, first, count, rows);
  else
    decode_rows(weight, first, count, rows.values.data());
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  for (std::size_t t = 0; t < x.size(); ++t) {
    inputs.push_back(x[t].values());
    outputs.push_back(y.row<float>(t) + first);
  }
  HWY_DYNAMIC_DISPATCH(dot_panel)(rows, rounded, count, inputs, outputs);
}

}  // namespace assay::cpu
#endif
