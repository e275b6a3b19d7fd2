// Kernels that touch each element once. Their time is that of memory: neighbours of a warp read neighbours in
// memory, and each number is read and written once. The grid's y are rows, as many as there may be; rows
// beyond them are reached by a step of the whole grid.
#pragma once

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/memory.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

inline constexpr int kElementwiseThreads = 256;

ASSAY_DEVICE float rounded_if(bool bfloat16, float x) {
  return bfloat16 ? round_to_bf16(x) : x;
}

// for_each(row, column) over rows × columns.
template <class Body>
ASSAY_DEVICE void for_each_element(std::uint32_t rows, std::uint32_t columns, Body body) {
  const std::uint64_t column =
      static_cast<std::uint64_t>(block_index().x) * kElementwiseThreads + thread_id();
  if (column >= columns) return;
  for (std::uint32_t row = block_index().y; row < rows; row += grid_size().y)
    body(static_cast<std::uint64_t>(row), static_cast<std::uint32_t>(column));
}

template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) rope_kernel(const RopeArguments a) {
  for_each_element(a.tokens, a.heads * a.pairs, [&](std::uint64_t token, std::uint32_t column) {
    const std::uint32_t head = column / a.pairs, pair = column % a.pairs;
    float* x = a.x + token * a.x_stride + static_cast<std::uint64_t>(head) * a.head_dim + a.offset;
    float& first = x[a.halves ? pair : 2 * pair];
    float& second = x[a.halves ? pair + a.pairs : 2 * pair + 1];
    const float c = a.cos[token * a.cos_stride + pair], s = a.sin[token * a.sin_stride + pair];
    const float p = first, q = second;
    if (a.bfloat16) {  // each product is rounded, then the sum
      first = round_to_bf16(round_to_bf16(p * c) - round_to_bf16(q * s));
      second = round_to_bf16(round_to_bf16(q * c) + round_to_bf16(p * s));
    } else {
      first = p * c - q * s;
      second = q * c + p * s;
    }
  });
}

ASSAY_DEVICE float logistic(float x) {
  return 1.0f / (1.0f + expf(-x));
}

// Without the sums 1 + erf and 1 + tanh, which cancel for negative x: Φ(x) = erfc(-x/√2) / 2, and
// (1 + tanh t) / 2 = σ(2t).
ASSAY_DEVICE float on_curve(float x, Curve curve) {
  switch (curve) {
    case Curve::silu: return x * logistic(x);
    case Curve::gelu: return 0.5f * x * erfcf(x * -0.70710678118654752f);
    case Curve::gelu_tanh: return x * logistic(1.59576912160573071f * (x + 0.044715f * x * x * x));
    case Curve::relu: return x < 0.0f ? 0.0f : x;  // NaN stays
    case Curve::gpt_oss: break;
  }
  return x;
}

// g σ(1.702 g) (u + 1) of the clamped g and u (refimpl/ops/activation.cpp); comparisons keep a NaN.
ASSAY_DEVICE float gpt_oss_gated(float gate, float up, float limit, bool bfloat16) {
  const float g = gate > limit ? limit : gate;
  const float u = up > limit ? limit : up < -limit ? -limit : up;
  const float sigma = rounded_if(bfloat16, logistic(rounded_if(bfloat16, g * 1.702f)));
  return rounded_if(bfloat16, u + 1.0f) * rounded_if(bfloat16, g * sigma);
}

template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) activation_kernel(const ActivationArguments a) {
  for_each_element(a.rows, a.columns, [&](std::uint64_t row, std::uint32_t column) {
    const std::uint64_t from = static_cast<std::uint64_t>(column) * a.step;
    const float x = a.x[row * a.x_stride + from];
    float y = 0;
    if (a.up == nullptr) {
      y = on_curve(x, a.curve);
    } else {
      const float up = a.up[row * a.up_stride + from];
      y = a.curve == Curve::gpt_oss ? gpt_oss_gated(x, up, a.limit, a.bfloat16)
                                    : rounded_if(a.bfloat16, on_curve(x, a.curve)) * up;
    }
    a.y[row * a.y_stride + column] = rounded_if(a.bfloat16, y);
  });
}

ASSAY_DEVICE float decoded(std::uint8_t code, Code type) {
  switch (type) {
    case Code::e4m3: return to_float(e4m3{code});
    case Code::e5m2: return to_float(f16{static_cast<std::uint16_t>(code << 8)});  // float16's upper half
    case Code::i8: break;
  }
  return static_cast<float>(static_cast<std::int8_t>(code));
}

template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) dequantize_kernel(const DequantizeArguments a) {
  for_each_element(a.rows, a.columns, [&](std::uint64_t row, std::uint32_t column) {
    const float scale = a.scales[row / a.block_rows * a.scale_columns + column / a.block_columns];
    const float value = decoded(a.codes[row * a.columns + column], a.code) * scale;
    a.y[row * a.y_stride + column] = rounded_if(a.bfloat16, value);
  });
}

inline void launch_rope(const LaunchPlan& plan, const RopeArguments& a, Stream stream) {
  launch(plan, rope_kernel<kElementwiseThreads>, stream, a);
}
inline void launch_activation(const LaunchPlan& plan, const ActivationArguments& a, Stream stream) {
  launch(plan, activation_kernel<kElementwiseThreads>, stream, a);
}
inline void launch_dequantize(const LaunchPlan& plan, const DequantizeArguments& a, Stream stream) {
  launch(plan, dequantize_kernel<kElementwiseThreads>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
