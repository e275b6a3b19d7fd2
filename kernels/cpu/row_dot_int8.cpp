#include "kernels/cpu/row_dot_int8.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/numeric/gguf_layout.h"
#include "core/numeric/vnni_targets.h"
#include "kernels/cpu/fetch_ahead.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_dot_int8.cpp"
#include <hwy/foreach_target.h>
//
#include "core/numeric/vnni_highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/block_codes.h"
#include "kernels/cpu/int_products.h"
#include "kernels/cpu/unrolled.h"

// Where no instruction multiplies bytes: plain loops over unpacked blocks.
template <class Block>
HWY_INLINE float dot_plain_blocks(const std::byte* w, const Int8Input& x) {
  constexpr std::size_t kGroup = Block::kGroup;
  const auto* block = reinterpret_cast<const typename Block::Stored*>(w);
  const std::size_t groups = x.scales.size() * 32 / kGroup;
  const std::int8_t* codes_x = x.groups[0].codes;
  UnpackedBlock u;
  const std::int8_t* codes = u.codes;
  float total = 0;
  for (std::size_t g = 0; g < groups; ++g, codes += kGroup, codes_x += kGroup) {
    const std::size_t part = g % static_cast<std::size_t>(Block::kGroups);
    if (part == 0) codes = Block::unpack(*block++, u);
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < kGroup; ++i) sum += codes[i] * codes_x[i];
    const std::size_t of_32 = g * kGroup / 32;
    total += u.scales[part] * x.scales[of_32] * static_cast<float>(sum);
    if constexpr (Block::kMinimum) total += u.minima[part] * x.sums_of_32[of_32];
  }
  return total;
}

#if ASSAY_BYTE_PRODUCTS
using SByte = SignedBytes;
using VSigned = hn::Vec<SByte>;
using D16 = hn::RepartitionToWide<SByte>;
using D32 = hn::RepartitionToWide<D16>;
using DF = hn::RebindToFloat<D32>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using VF = hn::Vec<DF>;
constexpr std::size_t kBytes = hn::MaxLanes(Bytes());  // 32, or 16: two vectors a group

HWY_INLINE VSigned with_sign_of(VSigned x, VSigned of) {  // 0 where `of` is
#if HWY_TARGET == HWY_SSE4
  return VSigned{_mm_sign_epi8(x.raw, of.raw)};
#else
  return VSigned{_mm256_sign_epi8(x.raw, of.raw)};
#endif
}
HWY_INLINE VSigned inputs_at(const Codes32& group, std::size_t i) {
  return hn::LoadU(SByte(), group.codes + i);
}

// A token's inputs, where they lie.
struct Int8InputView {
  HWY_INLINE explicit Int8InputView(const Int8Input& x)
      : groups(x.groups.data()),
        scales(x.scales.data()),
        sums_of_32(x.sums_of_32.data()),
        super_blocks(x.super_blocks.data()),
        wide(x.wide.data()) {}
  const Codes32* groups;
  const float *scales, *sums_of_32;
  const Input256* super_blocks;
  const Input256Wide* wide;
};
template <std::size_t Tokens>
using Inputs = std::array<Int8InputView, Tokens>;

#include "kernels/cpu/sums_of_eight.h"
// Both need it.
#include "kernels/cpu/small_block_dot.h"
#include "kernels/cpu/super_block_dot.h"
#if ASSAY_VNNI
#include "kernels/cpu/wide_block_dot.h"
#endif

template <class Block, std::size_t Rows, std::size_t Tokens>
HWY_INLINE void dot_blocks(const std::byte* w, std::size_t row_bytes, std::size_t groups,
                           const Inputs<Tokens>& x, float (&y)[Rows][Tokens]) {
#if ASSAY_VNNI
  dot_wide_blocks<Block>(w, row_bytes, groups, x, y);
#else
  static_assert(Rows == 1);
  static_cast<void>(row_bytes);
  using Stored = typename Block::Stored;
  if constexpr (std::is_same_v<Stored, gguf_blocks::Q6_K>)
    dot_q6_k<Tokens>(w, groups / 8, x, y[0]);
  else if constexpr (Block::kCodes == 256)
    dot_nibble_blocks<Stored, Tokens>(w, groups / 8, x, y[0]);
  else
    dot_small_blocks<Block, Tokens>(w, groups, x, y[0]);
#endif
}

// Rows at a time: two share the inputs of several tokens.
template <std::size_t Tokens>
constexpr std::size_t kRowsOfTile = ASSAY_VNNI&& Tokens >= 4 ? 2 : 1;

template <class Block, std::size_t... T>
HWY_NOINLINE void dot_rows_of(const StoredRows& w, const Int8Input* x, float* const* y,
                              std::index_sequence<T...> /*tokens*/) {
  constexpr std::size_t kTokens = sizeof...(T), kRows = kRowsOfTile<kTokens>;
  const Inputs<kTokens> inputs = {Int8InputView(x[T])...};
  const std::size_t groups = x->scales.size();
  const auto dot = [&]<std::size_t Rows>(std::size_t first, std::integral_constant<std::size_t, Rows>)
                       HWY_ATTR {
                         float of_rows[Rows][kTokens];
                         dot_blocks<Block>(w.at + first * w.row_bytes, w.row_bytes, groups, inputs, of_rows);
                         for (std::size_t r = 0; r < Rows; ++r) ((y[T][first + r] = of_rows[r][T]), ...);
                       };
  std::size_t r = 0;
  for (; r + kRows <= w.count; r += kRows) dot(r, std::integral_constant<std::size_t, kRows>());
  for (; r < w.count; ++r) dot(r, std::integral_constant<std::size_t, 1>());
}

// As many tokens as sums stay in registers: codes are unpacked once for all of them.
constexpr std::size_t kTokensOfTile = ASSAY_VNNI ? 8 : HWY_TARGET <= HWY_AVX3 ? 4 : 2;

template <class Block, std::size_t Tokens = kTokensOfTile>
void dot_tokens(const StoredRows& w, std::span<const Int8Input> x, float* const* y) {
  std::size_t t = 0;
  for (; t + Tokens <= x.size(); t += Tokens)
    dot_rows_of<Block>(w, &x[t], y + t, std::make_index_sequence<Tokens>());
  if constexpr (Tokens > 1) dot_tokens<Block, Tokens / 2>(w, x.subspan(t), y + t);
}
#else
template <class Block>
void dot_tokens(const StoredRows& w, std::span<const Int8Input> x, float* const* y) {
  for (std::size_t t = 0; t < x.size(); ++t) {
    for (std::size_t r = 0; r < w.count; ++r) y[t][r] = dot_plain_blocks<Block>(w.at + r * w.row_bytes, x[t]);
  }
}
#endif

void dot_rows_int8(const StoredRows& w, std::span<const Int8Input> x, float* const* y) {
  switch (w.type) {
    case ElementType::Q4_0: return dot_tokens<Q4_0Block>(w, x, y);
    case ElementType::Q4_1: return dot_tokens<Q4_1Block>(w, x, y);
    case ElementType::Q5_0: return dot_tokens<Q5_0Block>(w, x, y);
    case ElementType::Q5_1: return dot_tokens<Q5_1Block>(w, x, y);
    case ElementType::Q8_0: return dot_tokens<Q8_0Block>(w, x, y);
    case ElementType::Q4_K: return dot_tokens<Q4_KBlock>(w, x, y);
    case ElementType::Q5_K: return dot_tokens<Q5_KBlock>(w, x, y);
    default: return dot_tokens<Q6_KBlock>(w, x, y);
  }
}

bool multiplies_wide_blocks() {
  return ASSAY_VNNI;
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(dot_rows_int8);
HWY_EXPORT(multiplies_wide_blocks);

Int8Input int8_input(std::span<const float> x, ElementType weight) {
  Int8Input in(x);
  const bool super_blocks = is_super_block(weight);
  using Groups = Int8Input::Groups;
  if (HWY_DYNAMIC_DISPATCH(multiplies_wide_blocks)())
    in.arrange_wide(super_blocks ? Groups::by_turns : Groups::in_order, weight == ElementType::Q8_0);
  else if (super_blocks)
    in.arrange_super_blocks();
  return in;
}

void int8_row_dots(const WeightView& weight, std::size_t first, std::size_t count,
                   std::span<const Int8Input> x, const Matrix& y) {
  std::vector<float*> outputs;
  for (std::size_t t = 0; t < x.size(); ++t) outputs.push_back(y.row<float>(t) + first);
  const StoredRows rows = {weight.type, weight.codes + first * weight.row_bytes, weight.row_bytes, count};
  HWY_DYNAMIC_DISPATCH(dot_rows_int8)(rows, x, outputs.data());
}

}  // namespace assay::cpu
#endif
