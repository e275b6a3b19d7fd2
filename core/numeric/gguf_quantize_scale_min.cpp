// Q2_K, Q4_K, Q5_K: each group of 16 or 32 values is scale * code - minimum, code >= 0, minimum >= 0.
//
// For a row of candidate scales the values are rounded to codes; the codes then fixed, the scale and minimum
// of least weighted squares follow in closed form, and the best candidate's are kept (ggml's
// make_qkx2_quants). The groups' scales and minima are themselves rounded to 4 or 6 bits under one half
// each, and the codes rounded again to what those come to.
#include <algorithm>
#include <cmath>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/gguf_quantize_scale_min.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "core/numeric/gguf_quantize_lanes.h"
#include "core/numeric/gguf_quantize_pack.h"

HWY_BEFORE_NAMESPACE();
namespace assay::gguf_blocks::HWY_NAMESPACE {

// What tells the types apart. Candidate scales are (max - min) / (most + first + step * i), i = 0..steps.
struct SearchQ2 {
  static constexpr int group = 16, most = 3, steps = 15;
  static constexpr float first = -0.5f, step = 0.1f;
  static constexpr bool absolute = true;  // the error counts by magnitude, not squared
};
struct SearchQ4 {
  static constexpr int group = 32, most = 15, steps = 20;
  static constexpr float first = -1.0f, step = 0.1f;
  static constexpr bool absolute = false;
};
struct SearchQ5 {
  static constexpr int group = 32, most = 31, steps = 15;
  static constexpr float first = -0.5f, step = 0.1f;
  static constexpr bool absolute = false;
};

// By group. The search's codes are nearest_int(inverse * (x - base)): base is the least value that the
// chosen candidate started from, not the minimum it led to.
struct Fits {
  HWY_ALIGN float scale[kSuperBlock / 16], minimum[kSuperBlock / 16], inverse[kSuperBlock / 16],
      base[kSuperBlock / 16];
};

// Weight of each value: its magnitude, and where groups are of 32 that plus the group's root mean square.
template <class Search>
HWY_INLINE void weigh(const float* HWY_RESTRICT x, float* HWY_RESTRICT weights) {
  const std::size_t n = lanes();
  V mean = hn::Zero(F());
  if constexpr (Search::group == 32) {
    for (std::size_t i = 0; i < 32; ++i) {
      const V xi = hn::Load(F(), x + i * n);
      mean = hn::Add(mean, hn::Mul(xi, xi));
    }
    mean = hn::Sqrt(hn::Div(mean, splat(32)));
  }
  for (std::size_t i = 0; i < Search::group; ++i) {
    const V magnitude = hn::Abs(hn::Load(F(), x + i * n));
    hn::Store(Search::group == 32 ? hn::Add(mean, magnitude) : magnitude, F(), weights + i * n);
  }
}

template <class Search>
HWY_INLINE V weighted_error(V weight, V fit, V x) {
  const V difference = hn::Sub(fit, x);
  return hn::Mul(weight, Search::absolute ? hn::Abs(difference) : hn::Mul(difference, difference));
}

// One group per lane. kAnySize: rounds as nearest_int does whatever the size; otherwise, where that would
// matter, gives up with false.
template <class Search, bool kAnySize>
bool search(const float* HWY_RESTRICT x, const float* HWY_RESTRICT weights, Fits& fits, std::size_t at) {
  constexpr int kMost = Search::most;
  const std::size_t n = lanes();
  const V zero = hn::Zero(F());
  const auto code_of = [](V scaled) HWY_ATTR {
    return kAnySize ? clamped_nearest(scaled, 0, kMost) : clamped_nearest_small(scaled, 0, kMost);
  };

  V least = hn::Load(F(), x), most = least, sum_w = hn::Load(F(), weights), sum_x = hn::Mul(sum_w, least);
  for (std::size_t i = 1; i < Search::group; ++i) {
    const V xi = hn::Load(F(), x + i * n), w = hn::Load(F(), weights + i * n);
    least = hn::Min(xi, least);
    most = hn::Max(xi, most);
    sum_w = hn::Add(sum_w, w);
    sum_x = hn::Add(sum_x, hn::Mul(w, xi));
  }
  V minimum = hn::IfThenElse(hn::Gt(least, zero), zero, least);
  const auto flat = hn::Eq(most, minimum);
  auto too_large = hn::FirstN(F(), 0);
  const auto check_size = [&](V inverse) HWY_ATTR {
    const V reach = hn::Max(hn::Abs(hn::Sub(most, minimum)), hn::Abs(hn::Sub(least, minimum)));
    const V scaled = hn::Mul(hn::Abs(inverse), reach);
    too_large = hn::Or(too_large, hn::Not(hn::Le(scaled, splat(kRounderLimit))));
  };

  V best_inverse = hn::Div(splat(kMost), hn::Sub(most, minimum)), best_base = minimum;
  V scale = hn::Div(splat(1), best_inverse), best_error = zero;
  check_size(best_inverse);
  for (std::size_t i = 0; i < Search::group; ++i) {
    const V xi = hn::Load(F(), x + i * n);
    const V code = code_of(hn::Mul(best_inverse, hn::Sub(xi, minimum)));
    const V fit = hn::Add(hn::Mul(scale, code), minimum);
    best_error = hn::Add(best_error, weighted_error<Search>(hn::Load(F(), weights + i * n), fit, xi));
  }

  HWY_ALIGN float codes[Search::group * kMostLanes];
  for (int step = 0; step <= Search::steps; ++step) {
    const float most_codes = Search::first + Search::step * static_cast<float>(step) + kMost;
    const V inverse = hn::Div(splat(most_codes), hn::Sub(most, minimum));
    check_size(inverse);
    V sum_l = zero, sum_l2 = zero, sum_xl = zero;
    for (std::size_t i = 0; i < Search::group; ++i) {
      const V xi = hn::Load(F(), x + i * n);
      const V code = code_of(hn::Mul(inverse, hn::Sub(xi, minimum)));
      hn::Store(code, F(), codes + i * n);
      const V wl = hn::Mul(hn::Load(F(), weights + i * n), code);
      sum_l = hn::Add(sum_l, wl);
      sum_l2 = hn::Add(sum_l2, hn::Mul(wl, code));
      sum_xl = hn::Add(sum_xl, hn::Mul(wl, xi));
    }
    // The normal equations' determinant, and their solution; a minimum must not be above zero.
    const V determinant = hn::Sub(hn::Mul(sum_w, sum_l2), hn::Mul(sum_l, sum_l));
    V this_scale = hn::Div(hn::Sub(hn::Mul(sum_w, sum_xl), hn::Mul(sum_x, sum_l)), determinant);
    V this_minimum = hn::Div(hn::Sub(hn::Mul(sum_l2, sum_x), hn::Mul(sum_l, sum_xl)), determinant);
    const auto above = hn::Gt(this_minimum, zero);
    this_minimum = hn::IfThenElse(above, zero, this_minimum);
    this_scale = hn::IfThenElse(above, hn::Div(sum_xl, sum_l2), this_scale);
    V error = zero;
    for (std::size_t i = 0; i < Search::group; ++i) {
      const V fit = hn::Add(hn::Mul(this_scale, hn::Load(F(), codes + i * n)), this_minimum);
      error = hn::Add(error,
                      weighted_error<Search>(hn::Load(F(), weights + i * n), fit, hn::Load(F(), x + i * n)));
    }
    const auto better = hn::And(hn::Gt(determinant, zero), hn::Lt(error, best_error));
    best_error = hn::IfThenElse(better, error, best_error);
    best_inverse = hn::IfThenElse(better, inverse, best_inverse);
    best_base = hn::IfThenElse(better, minimum, best_base);
    scale = hn::IfThenElse(better, this_scale, scale);
    minimum = hn::IfThenElse(better, this_minimum, minimum);
  }

  hn::StoreU(hn::IfThenZeroElse(flat, scale), F(), fits.scale + at);
  hn::StoreU(hn::Neg(minimum), F(), fits.minimum + at);
  hn::StoreU(hn::IfThenZeroElse(flat, best_inverse), F(), fits.inverse + at);
  hn::StoreU(best_base, F(), fits.base + at);
  return kAnySize || hn::AllFalse(F(), hn::AndNot(flat, too_large));
}

template <class Search>
void fit_groups(const float* x, std::size_t groups, Fits& fits) {
  HWY_ALIGN float values[Search::group * kMostLanes], weights[Search::group * kMostLanes];
  for (std::size_t at = 0; at < groups; at += lanes()) {
    transpose<Search::group>(x + at * Search::group, groups - at, values);
    weigh<Search>(values, weights);
    if (!search<Search, false>(values, weights, fits, at)) search<Search, true>(values, weights, fits, at);
  }
}

// A group's scale or minimum as a whole number of steps, `most` for the greatest of the block.
struct Steps {
  float inverse = 0, step = 0;
  Steps(const float* of_groups, int groups, float most) {
    float greatest = 0;
    for (int g = 0; g < groups; ++g) greatest = of_groups[g] > greatest ? of_groups[g] : greatest;
    if (greatest > 0) inverse = most / greatest;
    step = greatest / most;
  }
  std::uint8_t operator()(float of_group) const {
    return static_cast<std::uint8_t>(nearest_int(inverse * of_group));
  }
};

// The group's codes: for the scale and minimum as stored; where that scale is 0, those of the search.
template <class Search>
void code_group(const float* x, float scale, float minimum, float inverse, float base, std::uint8_t* codes) {
  for (std::size_t i = 0; i < Search::group; i += lanes()) {
    const V xi = hn::LoadU(F(), x + i);
    const V scaled = scale != 0 ? hn::Div(hn::Add(xi, splat(minimum)), splat(scale))
                                : hn::Mul(splat(inverse), hn::Sub(xi, splat(base)));
    store_bytes(clamp(nearest_int_lanes(scaled), 0, Search::most), codes + i);
  }
}

void pack(const float* x, const float* scale, const float* minimum, const float* inverse, const float* base,
          Q2_K& block) {
  const Steps scales(scale, 16, 15), minima(minimum, 16, 15);
  const float d = store_half(block.d, scales.step), dmin = store_half(block.dmin, minima.step);
  std::uint8_t codes[kSuperBlock];
  for (int g = 0; g < 16; ++g) {
    const std::uint8_t packed = static_cast<std::uint8_t>(scales(scale[g]) | minima(minimum[g]) << 4);
    block.scales[g] = packed;
    code_group<SearchQ2>(x + 16 * g, d * static_cast<float>(packed & 15),
                         dmin * static_cast<float>(packed >> 4), inverse[g], base[g], codes + 16 * g);
  }
  pack_codes(codes, block);
}

template <class Search, class Block>
void code_block(const float* x, const float* scale, const float* minimum, const float* inverse,
                const float* base, Block& block, std::uint8_t* codes) {
  const Steps scales(scale, 8, 63), minima(minimum, 8, 63);
  const float d = store_half(block.d, scales.step), dmin = store_half(block.dmin, minima.step);
  for (int g = 0; g < 8; ++g) {
    const int ls = std::min<int>(63, scales(scale[g])), lm = std::min<int>(63, minima(minimum[g]));
    put_scale_and_minimum(block, g, ls, lm);
    code_group<Search>(x + 32 * g, d * static_cast<float>(ls), dmin * static_cast<float>(lm), inverse[g],
                       base[g], codes + 32 * g);
  }
}

void pack(const float* x, const float* scale, const float* minimum, const float* inverse, const float* base,
          Q4_K& block) {
  std::uint8_t codes[kSuperBlock];
  code_block<SearchQ4>(x, scale, minimum, inverse, base, block, codes);
  pack_codes(codes, block);
}

void pack(const float* x, const float* scale, const float* minimum, const float* inverse, const float* base,
          Q5_K& block) {
  std::uint8_t codes[kSuperBlock];
  code_block<SearchQ5>(x, scale, minimum, inverse, base, block, codes);
  pack_codes(codes, block);
}

template <class Search, class Block>
void quantize_blocks(const float* x, std::size_t blocks, std::byte* out) {
  constexpr std::size_t kGroups = kSuperBlock / Search::group, kTogether = 16 / kGroups;
  Fits fits;
  for (std::size_t b = 0; b < blocks; b += kTogether) {
    const std::size_t count = std::min(kTogether, blocks - b);
    fit_groups<Search>(x, count * kGroups, fits);
    for (std::size_t i = 0; i < count; ++i, x += kSuperBlock, out += sizeof(Block)) {
      Block block;
      const std::size_t g = i * kGroups;
      pack(x, fits.scale + g, fits.minimum + g, fits.inverse + g, fits.base + g, block);
      std::memcpy(out, &block, sizeof block);
    }
  }
}

void scale_min_blocks(ElementType type, const float* x, std::size_t blocks, std::byte* out) {
  switch (type) {
    case ElementType::Q2_K: return quantize_blocks<SearchQ2, Q2_K>(x, blocks, out);
    case ElementType::Q4_K: return quantize_blocks<SearchQ4, Q4_K>(x, blocks, out);
    default: return quantize_blocks<SearchQ5, Q5_K>(x, blocks, out);
  }
}

}  // namespace assay::gguf_blocks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::gguf_blocks {

HWY_EXPORT(scale_min_blocks);

void quantize_scale_min(ElementType type, const float* x, std::size_t blocks, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(scale_min_blocks)(type, x, blocks, out);
}

}  // namespace assay::gguf_blocks
#endif
