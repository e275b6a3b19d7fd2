#include "kernels/cpu/delta_step.h"

#include <algorithm>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/delta_step.cpp"
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

// `Vectors` vectors of the state's rows, `Full` ones or the first `count` columns of one.
template <std::size_t Vectors, bool Full>
HWY_INLINE void step_strip(const DeltaStep& t, std::size_t first, std::size_t count) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  const auto load = [&](const float* row, std::size_t i)
                        HWY_ATTR { return Full ? hn::LoadU(d, row + i * lanes) : load_some(row, count); };
  const auto store = [&](V32 v, float* row, std::size_t i)
                         HWY_ATTR { Full ? hn::StoreU(v, d, row + i * lanes) : store_some(v, row, count); };
  V32 u[Vectors], o[Vectors];
  for (std::size_t i = 0; i < Vectors; ++i) u[i] = o[i] = hn::Zero(d);
  const float* from = t.state.from + first;
  for (std::size_t c = 0; c < t.keys; ++c, from += t.state.from_stride) {
    const V32 factor = hn::Set(d, t.kept[c] * t.k[c]);
    for (std::size_t i = 0; i < Vectors; ++i) u[i] = hn::MulAdd(factor, load(from, i), u[i]);
  }
  for (std::size_t i = 0; i < Vectors; ++i)
    u[i] = hn::Mul(hn::Set(d, t.beta), hn::Sub(load(t.v + first, i), u[i]));
  from = t.state.from + first;
  float* to = t.state.to + first;
  for (std::size_t c = 0; c < t.keys; ++c, from += t.state.from_stride, to += t.state.to_stride) {
    const V32 kept = hn::Set(d, t.kept[c]), k = hn::Set(d, t.k[c]), q = hn::Set(d, t.q[c]);
    for (std::size_t i = 0; i < Vectors; ++i) {
      const V32 s = hn::MulAdd(kept, load(from, i), hn::Mul(k, u[i]));
      store(s, to, i);
      o[i] = hn::MulAdd(q, s, o[i]);
    }
  }
  for (std::size_t i = 0; i < Vectors; ++i) store(o[i], t.out + first, i);
}

void step_rows(const DeltaStep& t) {
  const std::size_t lanes = hn::Lanes(F32());
  std::size_t i = 0;
  for (; i + kDeltaStrip * lanes <= t.values; i += kDeltaStrip * lanes)
    step_strip<kDeltaStrip, true>(t, i, 0);
  for (; i + lanes <= t.values; i += lanes) step_strip<1, true>(t, i, 0);
  if (i < t.values) step_strip<1, false>(t, i, t.values - i);
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(step_rows);

void delta_step(const DeltaStep& step) {
  HWY_DYNAMIC_DISPATCH(step_rows)(step);
}

}  // namespace assay::cpu
#endif
