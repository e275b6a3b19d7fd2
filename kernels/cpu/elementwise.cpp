#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/team.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cpp"
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

void norm_row(const float* x, const float* w, std::size_t count, float epsilon, float* y) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  V32 squares = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V32 v = hn::LoadU(d, x + i);
    squares = hn::MulAdd(v, v, squares);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, squares));
  for (; i < count; ++i) sum += x[i] * x[i];
  const float factor = 1 / std::sqrt(sum / static_cast<float>(count) + epsilon);
  for (i = 0; i + lanes <= count; i += lanes) {
    const V32 scaled = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor));
    hn::StoreU(hn::Mul(scaled, hn::LoadU(d, w + i)), d, y + i);
  }
  for (; i < count; ++i) y[i] = x[i] * factor * w[i];
}

HWY_INLINE V32 gate_vector(V32 gate, V32 up, const GatedActivation& form) {
  const F32 d;
  switch (form.activation) {
    case Activation::silu: return hn::Mul(hn::Mul(gate, sigmoid(gate)), up);
    case Activation::gelu_tanh: {
      // tanh(z) = 2 σ(2z) - 1, so ½ x (1 + tanh z) = x σ(2z)
      const V32 cube = hn::Mul(hn::Mul(gate, gate), gate);
      const V32 z = hn::MulAdd(cube, hn::Set(d, 0.044715F), gate);
      const V32 twice = hn::Mul(z, hn::Set(d, static_cast<float>(2 * std::sqrt(2 / std::numbers::pi))));
      return hn::Mul(hn::Mul(gate, sigmoid(twice)), up);
    }
    case Activation::gpt_oss: {
      const V32 limit = hn::Set(d, static_cast<float>(form.limit));
      const V32 g = hn::Min(gate, limit), u = hn::Max(hn::Min(up, limit), hn::Neg(limit));
      const V32 glu = hn::Mul(g, sigmoid(hn::Mul(g, hn::Set(d, 1.702F))));
      return hn::Mul(glu, hn::Add(u, hn::Set(d, 1.0F)));
    }
    case Activation::relu: return hn::Mul(hn::Max(gate, hn::Zero(d)), up);
    case Activation::relu_squared: {
      const V32 positive = hn::Max(gate, hn::Zero(d));
      return hn::Mul(hn::Mul(positive, positive), up);
    }
    case Activation::sigmoid: return hn::Mul(sigmoid(gate), up);
    case Activation::gelu: break;
  }
  return gate;
}

void gate_row(const float* gate, const float* up, std::size_t count, const GatedActivation& form, float* y) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(gate_vector(hn::LoadU(d, gate + i), hn::LoadU(d, up + i), form), d, y + i);
  if (i == count) return;
  HWY_ALIGN float g[HWY_MAX_BYTES / sizeof(float)] = {}, u[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy(gate + i, gate + count, g);
  std::copy(up + i, up + count, u);
  hn::StoreU(gate_vector(hn::LoadU(d, g), hn::LoadU(d, u), form), d, g);
  std::copy(g, g + (count - i), y + i);
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(norm_row);
HWY_EXPORT(gate_row);

namespace {

// Rows shared out over threads where there is enough of them to pay for it.
void over_rows(std::size_t rows, std::size_t columns, int jobs,
               const std::function<void(std::size_t)>& body) {
  const std::size_t step = std::max<std::size_t>(1, kWorthAThread / std::max<std::size_t>(1, columns));
  team_for(jobs, (rows + step - 1) / step, [&](std::size_t piece) {
    for (std::size_t r = piece * step; r < std::min(rows, (piece + 1) * step); ++r) body(r);
  });
}

void rotate(float& first, float& second, float cos, float sin) {
  const float a = first, b = second;
  first = a * cos - b * sin;
  second = b * cos + a * sin;
}

}  // namespace

void rms_norm(const Matrix& x, std::span<const float> w, double epsilon, const Matrix& y, int jobs) {
  const auto norm = HWY_DYNAMIC_DISPATCH(norm_row);
  over_rows(x.rows(), x.columns(), jobs, [&](std::size_t r) {
    for (std::size_t c = 0; c < x.columns(); c += w.size())
      norm(x.row<float>(r) + c, w.data(), w.size(), static_cast<float>(epsilon), y.row<float>(r) + c);
  });
}

void gated(const Matrix& gate, const Matrix& up, const GatedActivation& form, const Matrix& y, int jobs) {
  if (form.activation == Activation::gelu) {  // the error function has no vector form here
    over_rows(gate.rows(), gate.columns(), jobs, [&](std::size_t r) {
      for (std::size_t c = 0; c < gate.columns(); ++c) {
        const float g = gate.row<float>(r)[c];
        y.row<float>(r)[c] = 0.5F * g * (1 + std::erf(g * 0.70710678F)) * up.row<float>(r)[c];
      }
    });
    return;
  }
  const auto row = HWY_DYNAMIC_DISPATCH(gate_row);
  over_rows(gate.rows(), gate.columns(), jobs, [&](std::size_t r) {
    row(gate.row<float>(r), up.row<float>(r), gate.columns(), form, y.row<float>(r));
  });
}

void rope(const Matrix& x, const RopeCall& call, int jobs) {
  const std::size_t pairs = call.cos.columns();
  const bool halves = call.layout == RopeLayout::half_split;
  over_rows(x.rows(), x.columns(), jobs, [&](std::size_t t) {
    const float *cos = call.cos.row<float>(t), *sin = call.sin.row<float>(t);
    for (std::size_t h = 0; h < call.heads; ++h) {
      float* head = x.row<float>(t) + h * call.head_dim + call.offset;
      for (std::size_t i = 0; i < pairs; ++i)
        rotate(head[halves ? i : 2 * i], head[halves ? i + pairs : 2 * i + 1], cos[i], sin[i]);
    }
  });
}

void add(const Matrix& a, const Matrix& b, const Matrix& y, int jobs) {
  over_rows(a.rows(), a.columns(), jobs, [&](std::size_t r) {
    const float *left = a.row<float>(r), *right = b.row<float>(r);
    float* sum = y.row<float>(r);
    for (std::size_t c = 0; c < a.columns(); ++c) sum[c] = left[c] + right[c];
  });
}

}  // namespace assay::cpu
#endif
