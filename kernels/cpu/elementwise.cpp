#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/numeric/codec.h"
#include "core/numeric/simd_disabled_targets.h"
#include "kernels/cpu/team.h"
#include "refimpl/ops/activation.h"
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

#include "kernels/cpu/stages.h"

// `inner`: x / rms is rounded before the weight comes in (NormForm::weight_last).
template <class Stages>
HWY_INLINE void norm_as(const float* x, const float* w, std::size_t count, float epsilon, bool inner,
                        float* y) {
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
  for (i = 0; i < count; i += lanes) {
    const std::size_t here = std::min(lanes, count - i);
    V32 scaled = hn::Mul(load_some(x + i, here), hn::Set(d, factor));
    if (inner) scaled = Stages::stage(scaled);
    store_some(Stages::stage(hn::Mul(scaled, load_some(w + i, here))), y + i, here);
  }
}
void norm_row(const float* x, const float* w, std::size_t count, float epsilon, float* y) {
  norm_as<KeepFloat32>(x, w, count, epsilon, false, y);
}
void norm_row_bf16(const float* x, const float* w, std::size_t count, float epsilon, bool inner, float* y) {
  norm_as<RoundToBf16>(x, w, count, epsilon, inner, y);
}

template <class Stages>
HWY_INLINE V32 gate_vector(V32 gate, V32 up, const GatedActivation& form) {
  const F32 d;
  const auto times_up = [&](V32 activated)
                            HWY_ATTR { return Stages::stage(hn::Mul(Stages::stage(activated), up)); };
  switch (form.activation) {
    case Activation::silu: return times_up(hn::Mul(gate, sigmoid(gate)));
    case Activation::gelu_tanh: {
      // tanh(z) = 2 σ(2z) - 1, so ½ x (1 + tanh z) = x σ(2z)
      const V32 cube = hn::Mul(hn::Mul(gate, gate), gate);
      const V32 z = hn::MulAdd(cube, hn::Set(d, 0.044715F), gate);
      const V32 twice = hn::Mul(z, hn::Set(d, static_cast<float>(2 * std::sqrt(2 / std::numbers::pi))));
      return times_up(hn::Mul(gate, sigmoid(twice)));
    }
    case Activation::gpt_oss: {
      const V32 limit = hn::Set(d, static_cast<float>(form.limit));
      const V32 g = hn::Min(gate, limit), u = hn::Max(hn::Min(up, limit), hn::Neg(limit));
      const V32 sharp = Stages::stage(hn::Mul(g, hn::Set(d, 1.702F)));
      const V32 glu = Stages::stage(hn::Mul(g, Stages::stage(sigmoid(sharp))));
      return Stages::stage(hn::Mul(glu, Stages::stage(hn::Add(u, hn::Set(d, 1.0F)))));
    }
    case Activation::relu: return times_up(hn::Max(gate, hn::Zero(d)));
    case Activation::relu_squared: {
      const V32 positive = hn::Max(gate, hn::Zero(d));
      return times_up(hn::Mul(positive, positive));
    }
    case Activation::sigmoid: return times_up(sigmoid(gate));
    default: break;  // has_vectors
  }
  return gate;
}

template <class Stages>
HWY_INLINE void gate_as(const float* gate, const float* up, std::size_t count, const GatedActivation& form,
                        float* y) {
  const std::size_t lanes = hn::Lanes(F32());
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t here = std::min(lanes, count - i);
    store_some(gate_vector<Stages>(load_some(gate + i, here), load_some(up + i, here), form), y + i, here);
  }
}
void gate_row(const float* gate, const float* up, std::size_t count, const GatedActivation& form, float* y) {
  gate_as<KeepFloat32>(gate, up, count, form, y);
}
void gate_row_bf16(const float* gate, const float* up, std::size_t count, const GatedActivation& form,
                   float* y) {
  gate_as<RoundToBf16>(gate, up, count, form, y);
}

// Pairs (first[i], second[i]).
void rotate_row_bf16(float* first, float* second, const float* cos, const float* sin, std::size_t pairs) {
  const std::size_t lanes = hn::Lanes(F32());
  const auto product = [](V32 a, V32 b) HWY_ATTR { return RoundToBf16::stage(hn::Mul(a, b)); };
  for (std::size_t i = 0; i < pairs; i += lanes) {
    const std::size_t here = std::min(lanes, pairs - i);
    const V32 a = load_some(first + i, here), b = load_some(second + i, here);
    const V32 c = load_some(cos + i, here), s = load_some(sin + i, here);
    store_some(RoundToBf16::stage(hn::Sub(product(a, c), product(b, s))), first + i, here);
    store_some(RoundToBf16::stage(hn::Add(product(b, c), product(a, s))), second + i, here);
  }
}

void add_row_bf16(const float* a, const float* b, std::size_t count, float* y) {
  const std::size_t lanes = hn::Lanes(F32());
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t here = std::min(lanes, count - i);
    store_some(RoundToBf16::stage(hn::Add(load_some(a + i, here), load_some(b + i, here))), y + i, here);
  }
}

void round_row_to_bf16(float* x, std::size_t count) {
  const std::size_t lanes = hn::Lanes(F32());
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t here = std::min(lanes, count - i);
    store_some(RoundToBf16::stage(load_some(x + i, here)), x + i, here);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(norm_row);
HWY_EXPORT(norm_row_bf16);
HWY_EXPORT(gate_row);
HWY_EXPORT(gate_row_bf16);
HWY_EXPORT(rotate_row_bf16);
HWY_EXPORT(add_row_bf16);
HWY_EXPORT(round_row_to_bf16);

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

// Pairs that lie beside each other, in the order of rotate_row_bf16.
void rotate_neighbours_bf16(float* head, const float* cos, const float* sin, std::size_t pairs) {
  thread_local std::vector<float> first, second;
  first.resize(pairs);
  second.resize(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    first[i] = head[2 * i];
    second[i] = head[2 * i + 1];
  }
  HWY_DYNAMIC_DISPATCH(rotate_row_bf16)(first.data(), second.data(), cos, sin, pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    head[2 * i] = first[i];
    head[2 * i + 1] = second[i];
  }
}

bool has_vectors(Activation activation) {
  return activation != Activation::gelu && activation <= Activation::sigmoid;
}

// act(gate) · up, one by one: the error function has no vector form here, and what few models have needs none.
void gate_row_singly(const float* gate, const float* up, std::size_t count, Activation activation, bool bf16,
                     float* y) {
  const auto stage = [&](float v) { return bf16 ? decode(kBF16, encode(kBF16, v, Overflow::special)) : v; };
  const bool by_erf = activation == Activation::gelu;
  for (std::size_t c = 0; c < count; ++c) {
    const float curve = by_erf ? 0.5F * gate[c] * (1 + std::erf(gate[c] * 0.70710678F))
                               : static_cast<float>(activate(gate[c], activation));
    y[c] = stage(stage(curve) * up[c]);
  }
}

}  // namespace

void rms_norm(const Matrix& x, const Norm& norm, const Matrix& y, int jobs) {
  const std::size_t group = norm.w.size();
  const auto row = HWY_DYNAMIC_DISPATCH(norm_row);
  const auto row_bf16 = HWY_DYNAMIC_DISPATCH(norm_row_bf16);
  const auto epsilon = static_cast<float>(norm.epsilon);
  over_rows(x.rows(), x.columns(), jobs, [&](std::size_t r) {
    for (std::size_t c = 0; c < x.columns(); c += group) {
      const float* from = x.row<float>(r) + c;
      float* to = y.row<float>(r) + c;
      norm.bf16 ? row_bf16(from, norm.w.data(), group, epsilon, norm.round_before_weight, to)
                : row(from, norm.w.data(), group, epsilon, to);
    }
  });
}

void gated(const Matrix& gate, const Matrix& up, const GatedActivation& form, bool bf16, const Matrix& y,
           int jobs) {
  const auto row = bf16 ? HWY_DYNAMIC_DISPATCH(gate_row_bf16) : HWY_DYNAMIC_DISPATCH(gate_row);
  const bool by_vectors = has_vectors(form.activation);
  over_rows(gate.rows(), gate.columns(), jobs, [&](std::size_t r) {
    const float *g = gate.row<float>(r), *u = up.row<float>(r);
    by_vectors ? row(g, u, gate.columns(), form, y.row<float>(r))
               : gate_row_singly(g, u, gate.columns(), form.activation, bf16, y.row<float>(r));
  });
}

void rope(const Matrix& x, const RopeCall& call, bool bf16, int jobs) {
  const std::size_t pairs = call.cos.columns();
  const bool halves = call.layout == RopeLayout::half_split;
  const auto rotate_halves = HWY_DYNAMIC_DISPATCH(rotate_row_bf16);
  over_rows(x.rows(), x.columns(), jobs, [&](std::size_t t) {
    const float *cos = call.cos.row<float>(t), *sin = call.sin.row<float>(t);
    for (std::size_t h = 0; h < call.heads; ++h) {
      float* head = x.row<float>(t) + h * call.head_dim + call.offset;
      if (bf16) {
        halves ? rotate_halves(head, head + pairs, cos, sin, pairs)
               : rotate_neighbours_bf16(head, cos, sin, pairs);
        continue;
      }
      for (std::size_t i = 0; i < pairs; ++i)
        rotate(head[halves ? i : 2 * i], head[halves ? i + pairs : 2 * i + 1], cos[i], sin[i]);
    }
  });
}

void add(const Matrix& a, const Matrix& b, bool bf16, const Matrix& y, int jobs) {
  const auto add_bf16 = HWY_DYNAMIC_DISPATCH(add_row_bf16);
  over_rows(a.rows(), a.columns(), jobs, [&](std::size_t r) {
    const float *left = a.row<float>(r), *right = b.row<float>(r);
    float* sum = y.row<float>(r);
    if (bf16) return add_bf16(left, right, a.columns(), sum);
    for (std::size_t c = 0; c < a.columns(); ++c) sum[c] = left[c] + right[c];
  });
}

void round_to_bf16(const Matrix& y, int jobs) {
  const auto round = HWY_DYNAMIC_DISPATCH(round_row_to_bf16);
  over_rows(y.rows(), y.columns(), jobs, [&](std::size_t r) { round(y.row<float>(r), y.columns()); });
}
void round_to_bf16(std::span<float> values) {
  HWY_DYNAMIC_DISPATCH(round_row_to_bf16)(values.data(), values.size());
}

}  // namespace assay::cpu
#endif
