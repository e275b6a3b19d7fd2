#include "kernels/cpu/gates.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/team.h"
#include "refimpl/ops/recurrence.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gates.cpp"
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

HWY_INLINE V32 gate_of(V32 gate, GateForm form) {
  if (form == GateForm::identity) return gate;
  const V32 s = sigmoid_of_any(gate);
  return form == GateForm::silu ? hn::Mul(gate, s) : s;
}

// A group of a row.
void gate_norm(const float* x, const float* gate, const float* w, std::size_t count, float epsilon,
               bool gate_first, GateForm form, float* y) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 squares = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t size = std::min(lanes, count - i);
    V32 v = load_some(x + i, size);
    if (gate_first) {
      v = hn::Mul(v, gate_of(load_some(gate + i, size), form));
      store_some(v, y + i, size);
    }
    squares = hn::MulAdd(v, v, squares);
  }
  const float mean = hn::GetLane(hn::SumOfLanes(d, squares)) / static_cast<float>(count);
  const V32 factor = hn::Set(d, 1 / std::sqrt(mean + epsilon));
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t size = std::min(lanes, count - i);
    V32 v = hn::Mul(load_some((gate_first ? y : x) + i, size), factor);
    v = hn::Mul(v, load_some(w + i, size));
    if (!gate_first) v = hn::Mul(v, gate_of(load_some(gate + i, size), form));
    store_some(v, y + i, size);
  }
}

// gates [count], each of `width` columns of x.
void gate_columns(const float* x, const float* gates, std::size_t count, std::size_t width, GateForm form,
                  float* y) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN float factors[HWY_MAX_BYTES / sizeof(float)];
  for (std::size_t g = 0; g < count; g += lanes) {
    const std::size_t size = std::min(lanes, count - g);
    const V32 factor = gate_of(load_some(gates + g, size), form);
    if (width == 1) {
      store_some(hn::Mul(load_some(x + g, size), factor), y + g, size);
      continue;
    }
    hn::Store(factor, d, factors);
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t first = (g + i) * width;
      for (std::size_t c = 0; c < width; c += lanes) {
        const std::size_t some = std::min(lanes, width - c);
        store_some(hn::Mul(load_some(x + first + c, some), hn::Set(d, factors[i])), y + first + c, some);
      }
    }
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(gate_norm);
HWY_EXPORT(gate_columns);

namespace {

// Rows shared out over threads where there is enough of them to pay for it.
void for_rows(const Matrix& x, int jobs, const std::function<void(std::size_t)>& body) {
  const std::size_t step = std::max<std::size_t>(1, kWorthAThread / std::max<std::size_t>(1, x.columns()));
  team_for(jobs, (x.rows() + step - 1) / step, [&](std::size_t piece) {
    for (std::size_t r = piece * step; r < std::min(x.rows(), (piece + 1) * step); ++r) body(r);
  });
}

}  // namespace

Matrix gated_norm(Ops& ops, const GatedNormCall& call) {
  const std::vector<double> some = vector_of(call.weight, ops.arithmetic());
  check_shapes(call, some);
  std::vector<float> w(call.x.columns());  // of every column
  for (std::size_t c = 0; c < w.size(); ++c)
    w[c] = static_cast<float>(some[c % some.size()] + (call.form == NormForm::one_plus_weight ? 1 : 0));
  Matrix y = ops.allocate(call.x.rows(), call.x.columns());
  const auto norm = HWY_DYNAMIC_DISPATCH(gate_norm);
  for_rows(y, ops.jobs(), [&](std::size_t r) {
    for (std::size_t c = 0; c < w.size(); c += call.group)
      norm(call.x.row<float>(r) + c, call.gate.row<float>(r) + c, &w[c], call.group,
           static_cast<float>(call.epsilon), call.gate_first, call.gate_form, y.row<float>(r) + c);
  });
  return y;
}

Matrix output_gate(Ops& ops, const OutputGateCall& call) {
  check_shapes(call);
  Matrix y = ops.allocate(call.x.rows(), call.x.columns());
  const std::size_t gates = call.gate.columns();
  const auto scale = HWY_DYNAMIC_DISPATCH(gate_columns);
  for_rows(y, ops.jobs(), [&](std::size_t r) {
    scale(call.x.row<float>(r), call.gate.row<float>(r), gates, y.columns() / gates, call.form,
          y.row<float>(r));
  });
  return y;
}

}  // namespace assay::cpu
#endif
