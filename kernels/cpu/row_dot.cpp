#include "kernels/cpu/row_dot.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/numeric/gguf_layout.h"
#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/fetch_ahead.h"
#include "kernels/cpu/int_input.h"
#include "kernels/operands/int16.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_dot.cpp"
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
#include "kernels/cpu/group_rounding.h"

struct AsI8 {
  static constexpr std::size_t kBytes = 1;
  static HWY_INLINE V32 load(const std::byte* at) {
    const hn::RebindToSigned<F32> di;
    const hn::Rebind<std::int8_t, F32> code;
    return hn::ConvertTo(F32(), hn::PromoteTo(di, load_bytes(code, at)));
  }
};

// E4M3's bits, moved to where float32 has its own, want only the exponent's bias corrected, by 120;
// subnormals and the one NaN code apart.
struct AsE4M3 {
  static constexpr std::size_t kBytes = 1;
  static HWY_INLINE V32 load(const std::byte* at) {
    const F32 d;
    const hn::RebindToUnsigned<F32> du;
    const hn::Rebind<std::uint8_t, F32> code;
    const auto wide = hn::PromoteTo(du, load_bytes(code, at));
    const auto magnitude = hn::And(wide, hn::Set(du, 0x7F));
    const auto sign = hn::ShiftLeft<24>(hn::And(wide, hn::Set(du, 0x80)));
    const auto normal = hn::Add(hn::ShiftLeft<20>(magnitude), hn::Set(du, 120u << 23));
    // Of a subnormal m, that is 2^-7 · (1 + m/8), where m/8 · 2^-6 is meant.
    const V32 lowest = hn::Set(d, 0x1p-7F);
    const V32 subnormal = hn::Mul(hn::Sub(hn::BitCast(d, normal), lowest), hn::Set(d, 2.0F));
    V32 value = hn::IfThenElse(hn::RebindMask(d, hn::Lt(magnitude, hn::Set(du, 8))), subnormal,
                               hn::BitCast(d, normal));
    value = hn::IfThenElse(hn::RebindMask(d, hn::Eq(magnitude, hn::Set(du, 0x7F))),
                           hn::BitCast(d, hn::Set(du, 0x7FC00000u)), value);
    return hn::Or(value, hn::BitCast(d, sign));
  }
};

template <class Element>
HWY_INLINE V32 dot_vectors(const std::byte* w, const float* HWY_RESTRICT x, std::size_t count) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  std::size_t k = 0;
  for (; k + 4 * lanes <= count; k += 4 * lanes) {
    const std::byte* at = w + k * Element::kBytes;
    const std::size_t step = lanes * Element::kBytes;
    fetch_ahead(at, 4 * step);
    a = hn::MulAdd(Element::load(at), hn::LoadU(d, x + k), a);
    b = hn::MulAdd(Element::load(at + step), hn::LoadU(d, x + k + lanes), b);
    c = hn::MulAdd(Element::load(at + 2 * step), hn::LoadU(d, x + k + 2 * lanes), c);
    e = hn::MulAdd(Element::load(at + 3 * step), hn::LoadU(d, x + k + 3 * lanes), e);
  }
  for (; k + lanes <= count; k += lanes)
    a = hn::MulAdd(Element::load(w + k * Element::kBytes), hn::LoadU(d, x + k), a);
  if (k < count) {  // what does not fill a vector, padded with zeros
    HWY_ALIGN std::byte rest_w[HWY_MAX_BYTES] = {};
    HWY_ALIGN float rest_x[HWY_MAX_BYTES / sizeof(float)] = {};
    std::memcpy(rest_w, w + k * Element::kBytes, (count - k) * Element::kBytes);
    std::memcpy(rest_x, x + k, (count - k) * sizeof(float));
    b = hn::MulAdd(Element::load(rest_w), hn::LoadU(d, rest_x), b);
  }
  return hn::Add(hn::Add(a, b), hn::Add(c, e));
}

template <class Element>
HWY_INLINE float dot_plain(const std::byte* w, const float* x, std::size_t count) {
  const F32 d;
  return hn::GetLane(hn::SumOfLanes(d, dot_vectors<Element>(w, x, count)));
}

// Codes under one scale a run of block_columns.
template <class Element>
HWY_INLINE float dot_scaled(const std::byte* w, const float* x, std::size_t count, std::size_t block_columns,
                            const float* scales) {
  const F32 d;
  V32 total = hn::Zero(d);
  for (std::size_t k = 0; k < count; k += block_columns, ++scales) {
    const V32 sum = dot_vectors<Element>(w + k, x + k, std::min(block_columns, count - k));
    total = hn::MulAdd(hn::Set(d, *scales), sum, total);
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

// Numbers rounded to integers under a scale for each 32 first: a group's integers by x, and their sum by the
// scale.
template <class Element>
HWY_INLINE V32 add_codes(const std::byte* w, const float* HWY_RESTRICT x, std::size_t groups, V32 total) {
  const F32 d;
  for (; groups > 0; --groups, w += kInt16Group * Element::kBytes, x += kInt16Group) {
    const GroupScale scale = scale_of<Element>(w);
    V32 sum = hn::Zero(d);
    for (std::size_t i = 0; i < kInt16Group; i += hn::Lanes(d)) {
      const V32 code = hn::Round(hn::Mul(Element::load(w + i * Element::kBytes), scale.inverse));
      sum = hn::MulAdd(code, hn::LoadU(d, x + i), sum);
    }
    total = hn::MulAdd(sum, scale.scale, total);
  }
  return total;
}

// `moderate`: of x, as is_moderate() says.
template <class Element>
HWY_INLINE float dot_rounded(const std::byte* w, const float* HWY_RESTRICT x, std::size_t count,
                             [[maybe_unused]] bool moderate) {
  const F32 d;
  V32 total = hn::Zero(d);
  std::size_t groups = count / kInt16Group;
#if ASSAY_GROUPS_AT_ONCE
  constexpr std::size_t kStep = kGroupsAtOnce * kInt16Group;
  HWY_ALIGN float rounders[2][kGroupsAtOnce];  // those of the groups after these are found meanwhile
  const std::size_t steps = moderate ? groups / kGroupsAtOnce : 0;
  bool usual = steps > 0 && find_rounders<Element>(w, rounders[0]);
  for (std::size_t step = 0; step < steps; ++step, w += kStep * Element::kBytes, x += kStep) {
    const bool now_usual = usual;
    if (step + 1 < steps)
      usual = find_rounders<Element>(w + kStep * Element::kBytes, rounders[(step + 1) % 2]);
    total = now_usual ? add_rounded<Element>(w, x, rounders[step % 2], total)
                      : add_codes<Element>(w, x, kGroupsAtOnce, total);
  }
  groups -= steps * kGroupsAtOnce;
#endif
  return hn::GetLane(hn::SumOfLanes(d, add_codes<Element>(w, x, groups, total)));
}

float dot_rounded_row(ElementType type, const std::byte* w, const float* x, std::size_t count,
                      bool moderate) {
  return type == ElementType::BF16 ? dot_rounded<AsBF16>(w, x, count, moderate)
                                   : dot_rounded<AsF16>(w, x, count, moderate);
}

// --- GGUF blocks

template <class Block>
HWY_INLINE V32 dot_codes(const std::int8_t* codes, const float* scales, const float* HWY_RESTRICT x,
                         V32 total) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const hn::Rebind<std::int8_t, F32> code_d;
  constexpr std::size_t kGroup = Block::kGroup;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t g = 0; g < static_cast<std::size_t>(Block::kGroups); ++g, codes += kGroup, x += kGroup) {
    V32 sum = hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(code_d, codes))), hn::LoadU(d, x));
    for (std::size_t i = lanes; i < kGroup; i += lanes) {
      const V32 code = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(code_d, codes + i)));
      sum = hn::MulAdd(code, hn::LoadU(d, x + i), sum);
    }
    total = hn::MulAdd(hn::Set(d, scales[g]), sum, total);
  }
  return total;
}

template <class Block>
HWY_INLINE float dot_blocks(const std::byte* w, const float* x, std::size_t count, const float* sums_of_32) {
  using Stored = typename Block::Stored;
  const F32 d;
  V32 even = hn::Zero(d), odd = hn::Zero(d);
  float minima = 0;
  UnpackedBlock u;
  const auto* block = reinterpret_cast<const Stored*>(w);
  const auto add = [&](V32 total) HWY_ATTR {
    const std::int8_t* codes = Block::unpack(*block++, u);
    total = dot_codes<Block>(codes, u.scales, x, total);
    x += Block::kCodes;
    if constexpr (Block::kMinimum) {
      for (int g = 0; g < Block::kGroups; ++g) minima += u.minima[g] * sums_of_32[g];
      sums_of_32 += Block::kGroups;
    }
    return total;
  };
  const std::size_t blocks = count / Block::kCodes;
  for (std::size_t i = 0; i < blocks / 2; ++i) {
    even = add(even);
    odd = add(odd);
  }
  if (blocks % 2 != 0) even = add(even);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd))) + minima;
}

float dot_row(const WeightView& weight, const std::byte* w, const float* scales, const float* x,
              const float* sums_of_32) {
  const std::size_t n = weight.columns;
  if (weight.kind == FormKind::scaled) {
    const std::size_t block = weight.block_columns;
    if (weight.type == ElementType::F8_E4M3) return dot_scaled<AsE4M3>(w, x, n, block, scales);
    return dot_scaled<AsI8>(w, x, n, block, scales);
  }
  switch (weight.type) {
    case ElementType::F32: return dot_plain<AsF32>(w, x, n);
    case ElementType::BF16: return dot_plain<AsBF16>(w, x, n);
    case ElementType::F16: return dot_plain<AsF16>(w, x, n);
    case ElementType::Q4_0: return dot_blocks<Q4_0Block>(w, x, n, sums_of_32);
    case ElementType::Q4_1: return dot_blocks<Q4_1Block>(w, x, n, sums_of_32);
    case ElementType::Q5_0: return dot_blocks<Q5_0Block>(w, x, n, sums_of_32);
    case ElementType::Q5_1: return dot_blocks<Q5_1Block>(w, x, n, sums_of_32);
    case ElementType::Q8_0: return dot_blocks<Q8_0Block>(w, x, n, sums_of_32);
    case ElementType::Q4_K: return dot_blocks<Q4_KBlock>(w, x, n, sums_of_32);
    case ElementType::Q5_K: return dot_blocks<Q5_KBlock>(w, x, n, sums_of_32);
    default: return dot_blocks<Q6_KBlock>(w, x, n, sums_of_32);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(dot_row);
HWY_EXPORT(dot_rounded_row);

namespace {

// Every group's largest is zero or within 2^±60, so that its codes' scale is 2^-74 at least: with weights as
// find_rounders() has them no product is lost below float32's least number, or above its largest.
bool is_moderate(std::span<const float> rounded) {
  for (std::size_t first = 0; first < rounded.size(); first += kInt16Group) {
    float largest = 0;
    for (const float x : rounded.subspan(first, kInt16Group)) largest = std::max(largest, std::fabs(x));
    if (largest != 0 && !(largest >= 0x1p-60F && largest <= 0x1p60F)) return false;
  }
  return true;
}

}  // namespace

DotInput::DotInput(std::span<const float> x_, const WeightView& weight, bool int16_) : x(x_), int16(int16_) {
  if (int16) {
    rounded = rounded_input(x, int16_input_bits(weight));
    moderate = is_moderate(rounded);
  }
  if (!has_integer_rows(weight)) return;
  sums_of_32.resize((x.size() + 31) / 32);
  for (std::size_t i = 0; i < x.size(); ++i) sums_of_32[i / 32] += x[i];
}

bool reads_directly(const WeightView& weight) {
  if (weight.codes == nullptr) return false;
  if (weight.kind == FormKind::scaled) {
    return (weight.type == ElementType::F8_E4M3 || weight.type == ElementType::I8) &&
           weight.global == GlobalScale::none;
  }
  const bool number =
      weight.type == ElementType::F32 || weight.type == ElementType::BF16 || weight.type == ElementType::F16;
  return weight.kind == FormKind::plain && (number || is_integer_block(weight.type));
}

void row_dots(const WeightView& weight, std::size_t first, std::size_t count, const DotInput& x, float* y) {
  if (x.int16) {
    const auto rounded = HWY_DYNAMIC_DISPATCH(dot_rounded_row);
    for (std::size_t r = 0; r < count; ++r)
      y[r] = rounded(weight.type, weight.codes + (first + r) * weight.row_bytes, x.values(), weight.columns,
                     x.moderate);
    return;
  }
  const auto dot = HWY_DYNAMIC_DISPATCH(dot_row);
  if (!reads_directly(weight)) {
    static const std::string kNoName;
    std::vector<float> row(weight.columns);
    WeightView decoded;
    decoded.name = &kNoName;
    decoded.columns = weight.columns;
    for (std::size_t r = 0; r < count; ++r) {
      decode_rows(weight, first + r, 1, row.data());
      y[r] = dot(decoded, reinterpret_cast<const std::byte*>(row.data()), nullptr, x.values(), nullptr);
    }
    return;
  }
  std::vector<float> scales(weight.kind == FormKind::scaled ? weight.scale_columns : 0);
  std::size_t scales_of = static_cast<std::size_t>(-1);
  for (std::size_t r = 0; r < count; ++r) {
    const std::size_t block_row = (weight.first_row + first + r) / weight.block_rows;
    if (!scales.empty() && block_row != scales_of) {
      decode_scales(weight, first + r, scales.data());
      scales_of = block_row;
    }
    y[r] = dot(weight, weight.codes + (first + r) * weight.row_bytes, scales.data(), x.values(),
               x.sums_of_32.data());
  }
}

}  // namespace assay::cpu
#endif
