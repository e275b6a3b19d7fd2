#include "kernels/cpu/decayed_dots.h"

#include <algorithm>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/decayed_dots.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V32 = hn::Vec<F32>;

#include "kernels/cpu/logistic.h"

DotPair two_dots(const DecayedDots& of) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  const V32 least = hn::Set(d, -87.33F);
  V32 a = hn::Zero(d), b = hn::Zero(d);
  HWY_ALIGN float times[HWY_MAX_BYTES / sizeof(float)] = {};
  for (std::size_t c = 0; c < of.count; c += lanes) {
    const std::size_t count = std::min(lanes, of.count - c);
    for (std::size_t i = 0; i < count; ++i) times[i] = static_cast<float>(of.to[c + i] - of.from[c + i]);
    const V32 time = hn::Load(d, times);
    const V32 e = hn::IfThenElseZero(hn::Ge(time, least), hn::Exp(d, hn::Max(time, least)));
    // NaN stays.
    const V32 k = hn::Mul(load_some(of.k + c, count), hn::IfThenElse(hn::Eq(time, time), e, time));
    a = hn::MulAdd(load_some(of.a + c, count), k, a);
    b = hn::MulAdd(load_some(of.b + c, count), k, b);
  }
  return {hn::GetLane(hn::SumOfLanes(d, a)), hn::GetLane(hn::SumOfLanes(d, b))};
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(two_dots);

DotPair decayed_dots(const DecayedDots& of) {
  return HWY_DYNAMIC_DISPATCH(two_dots)(of);
}

}  // namespace assay::cpu
#endif
