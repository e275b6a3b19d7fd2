// Q3_K, Q6_K: each group of 16 values is scale * code, the code signed.
//
// Both minimize the squared error weighted by x * x. Q6_K tries a row of scales around the one that maps the
// extreme value to the end of the range (ggml's make_qx_quants); Q3_K starts from that one and changes one
// code at a time as long as that helps (make_q3_quants). For given codes l the best scale is
// sum(w x l) / sum(w l l), and the error falls by sum(w x l)^2 / sum(w l l).
#include <algorithm>
#include <cmath>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/gguf_quantize_symmetric.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "core/numeric/gguf_quantize_lanes.h"
#include "core/numeric/gguf_quantize_pack.h"

HWY_BEFORE_NAMESPACE();
namespace assay::gguf_blocks::HWY_NAMESPACE {

constexpr int kGroup = 16, kGroups = kSuperBlock / kGroup;

struct Sums {
  V xl, ll;
};

// sum(w x l) and sum(w l l) for l = nearest(inverse * x), w = x * x.
template <int kMost>
HWY_INLINE Sums sums_for(const float* HWY_RESTRICT x, V inverse) {
  Sums sums{hn::Zero(F()), hn::Zero(F())};
  for (std::size_t i = 0; i < kGroup; ++i) {
    const V xi = hn::Load(F(), x + i * lanes()), w = hn::Mul(xi, xi);
    const V code = clamped_nearest_small(hn::Mul(inverse, xi), -kMost, kMost - 1);
    sums.xl = hn::Add(sums.xl, hn::Mul(hn::Mul(w, xi), code));
    sums.ll = hn::Add(sums.ll, hn::Mul(hn::Mul(w, code), code));
  }
  return sums;
}

// Q6_K's scales; the codes it chose are nearest(inverse * x). Groups of nothing: both 0.
void search(const float* HWY_RESTRICT x, float* scales, float* inverses) {
  constexpr int kMost = 32;
  V magnitude;
  const V end = extreme<kGroup>(x, magnitude);
  const auto nothing = hn::Lt(magnitude, splat(kNothing));
  V best_inverse = hn::Div(splat(-kMost), end);
  Sums sums = sums_for<kMost>(x, best_inverse);
  V scale = hn::IfThenElse(hn::Eq(sums.ll, hn::Zero(F())), hn::Zero(F()), hn::Div(sums.xl, sums.ll));
  V best = hn::Mul(scale, sums.xl);
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    const V inverse = hn::Div(splat(-(kMost + 0.1f * static_cast<float>(step))), end);
    sums = sums_for<kMost>(x, inverse);
    const auto better =
        hn::And(hn::Gt(sums.ll, hn::Zero(F())), hn::Gt(hn::Mul(sums.xl, sums.xl), hn::Mul(best, sums.ll)));
    scale = hn::IfThenElse(better, hn::Div(sums.xl, sums.ll), scale);
    best = hn::IfThenElse(better, hn::Mul(scale, sums.xl), best);
    best_inverse = hn::IfThenElse(better, inverse, best_inverse);
  }
  hn::StoreU(hn::IfThenZeroElse(nothing, scale), F(), scales);
  hn::StoreU(hn::IfThenZeroElse(nothing, best_inverse), F(), inverses);
}

// One round of improvements to Q3_K's codes, value by value; whether any changed in any lane.
bool improve(const float* HWY_RESTRICT x, float* HWY_RESTRICT codes, Sums& sums) {
  constexpr int kMost = 4;
  const V zero = hn::Zero(F());
  bool changed = false;
  for (std::size_t i = 0; i < kGroup; ++i) {
    const V xi = hn::Load(F(), x + i * lanes()), w = hn::Mul(xi, xi), wx = hn::Mul(w, xi);
    const V code = hn::Load(F(), codes + i * lanes());
    V xl = hn::Sub(sums.xl, hn::Mul(wx, code));
    V ll = hn::Sub(sums.ll, hn::Mul(hn::Mul(w, code), code));
    const V other = clamped_nearest(hn::Div(hn::Mul(xi, ll), xl), -kMost, kMost - 1);
    auto better = hn::And(hn::Gt(xl, zero), hn::Ne(other, code));
    xl = hn::Add(xl, hn::Mul(wx, other));
    ll = hn::Add(ll, hn::Mul(hn::Mul(w, other), other));
    better = hn::And(better, hn::Gt(ll, zero));
    better =
        hn::And(better, hn::Gt(hn::Mul(hn::Mul(xl, xl), sums.ll), hn::Mul(hn::Mul(sums.xl, sums.xl), ll)));
    hn::Store(hn::IfThenElse(better, other, code), F(), codes + i * lanes());
    sums.xl = hn::IfThenElse(better, xl, sums.xl);
    sums.ll = hn::IfThenElse(better, ll, sums.ll);
    changed |= !hn::AllFalse(F(), better);
  }
  return changed;
}

// Q3_K's scales, and its codes, 0..7 (all 0 in groups of nothing).
void descend(const float* HWY_RESTRICT x, float* scales, float* HWY_RESTRICT codes) {
  constexpr int kMost = 4, kRounds = 5;
  V magnitude;
  const V inverse = hn::Div(splat(-kMost), extreme<kGroup>(x, magnitude));
  const auto nothing = hn::Lt(magnitude, splat(kNothing));
  for (std::size_t i = 0; i < kGroup; ++i) {
    const V scaled = hn::Mul(inverse, hn::Load(F(), x + i * lanes()));
    hn::Store(clamped_nearest_small(scaled, -kMost, kMost - 1), F(), codes + i * lanes());
  }
  Sums sums = sums_for<kMost>(x, inverse);
  for (int round = 0; round < kRounds && improve(x, codes, sums); ++round) {
  }
  const auto any = hn::AndNot(nothing, hn::Gt(sums.ll, hn::Zero(F())));
  hn::StoreU(hn::IfThenElseZero(any, hn::Div(sums.xl, sums.ll)), F(), scales);
  for (std::size_t i = 0; i < kGroup; ++i) {
    const V code = hn::Add(hn::Load(F(), codes + i * lanes()), splat(kMost));
    hn::Store(hn::IfThenZeroElse(nothing, code), F(), codes + i * lanes());
  }
}

// The scale of greatest magnitude, the first of several; 0 for zeros.
float extreme_scale(const float* scales) {
  float magnitude = 0, scale = 0;
  for (int g = 0; g < kGroups; ++g) {
    if (std::fabs(scales[g]) > magnitude) {
      magnitude = std::fabs(scales[g]);
      scale = scales[g];
    }
  }
  return scale;
}

// codes = nearest(x * factor or x / factor) + most.
template <int kMost, bool kDivide>
void code_group(const float* x, float factor, std::uint8_t* codes) {
  for (std::size_t i = 0; i < kGroup; i += lanes()) {
    const V xi = hn::LoadU(F(), x + i);
    const V scaled = kDivide ? hn::Div(xi, splat(factor)) : hn::Mul(xi, splat(factor));
    const VI code = clamp(nearest_int_lanes(scaled), -kMost, kMost - 1);
    store_bytes(hn::Add(code, hn::Set(I(), kMost)), codes + i);
  }
}

// Nothing but zero bytes stands for a block of nothing.
void quantize_one(const float* x, Q6_K& block) {
  HWY_ALIGN float values[kGroup * kMostLanes];
  float scales[kGroups], inverses[kGroups];
  for (std::size_t g = 0; g < kGroups; g += lanes()) {
    transpose<kGroup>(x + g * kGroup, kGroups - g, values);
    search(values, scales + g, inverses + g);
  }
  std::memset(&block, 0, sizeof block);
  const float greatest = extreme_scale(scales);
  if (std::fabs(greatest) < kNothing) return;
  const float inverse = -128 / greatest;
  const float d = store_half(block.d, 1 / inverse);
  std::uint8_t codes[kSuperBlock] = {};
  for (int g = 0; g < kGroups; ++g) {
    block.scales[g] = static_cast<std::int8_t>(std::min(127, nearest_int(inverse * scales[g])));
    const float scale = d * static_cast<float>(block.scales[g]);
    std::uint8_t* const of_group = codes + kGroup * g;
    if (scale != 0) {
      code_group<32, true>(x + kGroup * g, scale, of_group);
    } else if (inverses[g] != 0) {
      code_group<32, false>(x + kGroup * g, inverses[g], of_group);
    }
  }
  pack_codes(codes, block);
}

void quantize_one(const float* x, Q3_K& block) {
  HWY_ALIGN float values[kGroup * kMostLanes], found[kGroup * kMostLanes];
  float scales[kGroups];
  std::uint8_t codes[kSuperBlock];
  for (std::size_t g = 0; g < kGroups; g += lanes()) {
    transpose<kGroup>(x + g * kGroup, kGroups - g, values);
    descend(values, scales + g, found);
    for (std::size_t lane = 0; lane < lanes(); ++lane) {
      for (std::size_t i = 0; i < kGroup; ++i) {
        codes[(g + lane) * kGroup + i] = static_cast<std::uint8_t>(found[i * lanes() + lane]);
      }
    }
  }
  std::memset(&block, 0, sizeof block);
  const float greatest = extreme_scale(scales);
  const float inverse = -32 / greatest;
  const float d = greatest != 0 ? store_half(block.d, 1 / inverse) : 0;
  for (int g = 0; g < kGroups; ++g) {
    int level = 0;  // of six bits, 32 for a scale of 0
    if (greatest != 0) {
      level = std::clamp<int>(static_cast<std::int8_t>(nearest_int(inverse * scales[g])), -32, 31) + 32;
      put_level(block, g, level);
    }
    const float scale = d * static_cast<float>(level - 32);
    if (scale != 0) code_group<4, true>(x + kGroup * g, scale, codes + kGroup * g);
  }
  pack_codes(codes, block);
}

template <class Block>
void quantize_blocks(const float* x, std::size_t blocks, std::byte* out) {
  for (std::size_t b = 0; b < blocks; ++b, x += kSuperBlock, out += sizeof(Block)) {
    Block block;
    quantize_one(x, block);
    std::memcpy(out, &block, sizeof block);
  }
}

void symmetric_blocks(ElementType type, const float* x, std::size_t blocks, std::byte* out) {
  if (type == ElementType::Q3_K) return quantize_blocks<Q3_K>(x, blocks, out);
  quantize_blocks<Q6_K>(x, blocks, out);
}

}  // namespace assay::gguf_blocks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::gguf_blocks {

HWY_EXPORT(symmetric_blocks);

void quantize_symmetric(ElementType type, const float* x, std::size_t blocks, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(symmetric_blocks)(type, x, blocks, out);
}

}  // namespace assay::gguf_blocks
#endif
