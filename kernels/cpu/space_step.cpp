#include "kernels/cpu/space_step.h"

#include <algorithm>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/space_step.cpp"
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

void sizes_in_vectors(const StepSizes& of) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < of.count; i += lanes) {
    const std::size_t size = std::min(lanes, of.count - i);
    const V32 s = softplus_of_any(hn::Add(load_some(of.x + i, size), load_some(of.bias + i, size)));
    const V32 clamped = hn::Min(hn::Max(s, hn::Set(d, of.least)), hn::Set(d, of.most));
    store_some(hn::IfThenElse(hn::Eq(s, s), clamped, s), of.y + i, size);
  }
}

void space_step_in_vectors(const SpaceStep& t) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t p = 0; p < t.rows; ++p) {
    const float* from = t.state.from + p * t.state.from_stride;
    float* to = t.state.to + p * t.state.to_stride;
    const V32 in = hn::Set(d, t.size * t.x[p]);
    V32 sum = hn::Zero(d);
    for (std::size_t n = 0; n < t.columns; n += lanes) {
      const std::size_t count = std::min(lanes, t.columns - n);
      const V32 h = hn::MulAdd(load_some(t.kept + n, count), load_some(from + n, count),
                               hn::Mul(in, load_some(t.b + n, count)));
      store_some(h, to + n, count);
      sum = hn::MulAdd(load_some(t.c + n, count), h, sum);
    }
    t.out[p] = hn::GetLane(hn::SumOfLanes(d, sum)) + t.skip * t.x[p];
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(sizes_in_vectors);
HWY_EXPORT(space_step_in_vectors);

void step_sizes(const StepSizes& of) {
  HWY_DYNAMIC_DISPATCH(sizes_in_vectors)(of);
}
void space_step(const SpaceStep& step) {
  HWY_DYNAMIC_DISPATCH(space_step_in_vectors)(step);
}

}  // namespace assay::cpu
#endif
