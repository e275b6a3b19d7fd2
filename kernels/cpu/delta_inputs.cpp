#include "kernels/cpu/delta_inputs.h"

#include <algorithm>
#include <cmath>

#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/team.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/delta_inputs.cpp"
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

// x / √(Σ x² + ε) · scale; x · scale where ε is 0.
void unit_row(const float* x, std::size_t count, float epsilon, float scale, float* y) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  if (epsilon != 0) {
    V32 squares = hn::Zero(d);
    for (std::size_t i = 0; i < count; i += lanes) {
      const V32 v = load_some(x + i, std::min(lanes, count - i));
      squares = hn::MulAdd(v, v, squares);
    }
    scale /= std::sqrt(hn::GetLane(hn::SumOfLanes(d, squares)) + epsilon);
  }
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t size = std::min(lanes, count - i);
    store_some(hn::Mul(load_some(x + i, size), hn::Set(d, scale)), y + i, size);
  }
}

// -rate · softplus(x + bias), or floor · σ(rate · (x + bias)) where there is a floor.
void decay_row(const float* x, const float* bias, const float* rates, std::size_t count, float floor,
               float* y) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t size = std::min(lanes, count - i);
    const V32 z = hn::Add(load_some(x + i, size), load_some(bias + i, size));
    const V32 rate = load_some(rates + i, size);
    const V32 g = floor != 0 ? hn::Mul(hn::Set(d, floor), sigmoid_of_any(hn::Mul(rate, z)))
                             : hn::Neg(hn::Mul(rate, softplus_of_any(z)));
    store_some(g, y + i, size);
  }
}

void sigmoid_row_to(const float* x, std::size_t count, float* y) {
  const std::size_t lanes = hn::Lanes(F32());
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t size = std::min(lanes, count - i);
    store_some(sigmoid_of_any(load_some(x + i, size)), y + i, size);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(unit_row);
HWY_EXPORT(decay_row);
HWY_EXPORT(sigmoid_row_to);

DeltaInputs::DeltaInputs(const DeltaRuleCall& call, const std::vector<double>& log,
                         const std::vector<double>& bias, int jobs)
    : keys(call.q.columns()),
      decays(call.decay.columns()),
      heads(call.value_heads),
      channels(decays / heads) {
  const std::size_t tokens = call.v.rows();
  q.resize(tokens * keys);
  k.resize(tokens * keys);
  decay.resize(tokens * decays);
  beta.resize(tokens * heads);
  const std::vector<float> shifts(bias.begin(), bias.end());
  std::vector<float> rates;
  for (std::size_t c = 0; c < decays; ++c) rates.push_back(static_cast<float>(std::exp(log[c / channels])));
  const auto unit = HWY_DYNAMIC_DISPATCH(unit_row);
  const auto epsilon = static_cast<float>(call.norm_epsilon);
  const auto scale_of_beta = static_cast<float>(call.beta_scale);
  const std::size_t step =
      std::max<std::size_t>(1, kWorthAThread / std::max<std::size_t>(1, 2 * keys + decays));
  team_for(jobs, (tokens + step - 1) / step, [&](std::size_t piece) {
    for (std::size_t t = piece * step; t < std::min(tokens, (piece + 1) * step); ++t) {
      for (std::size_t c = 0; c < keys; c += call.key_dim) {
        unit(call.q.row<float>(t) + c, call.key_dim, epsilon, static_cast<float>(call.scale),
             &q[t * keys + c]);
        unit(call.k.row<float>(t) + c, call.key_dim, epsilon, 1, &k[t * keys + c]);
      }
      HWY_DYNAMIC_DISPATCH(decay_row)
      (call.decay.row<float>(t), shifts.data(), rates.data(), decays, static_cast<float>(call.decay_floor),
       &decay[t * decays]);
      HWY_DYNAMIC_DISPATCH(sigmoid_row_to)(call.beta.row<float>(t), heads, &beta[t * heads]);
      for (std::size_t h = 0; h < heads; ++h) beta[t * heads + h] *= scale_of_beta;
    }
  });
}

}  // namespace assay::cpu
#endif
