// A mixture of experts but its products: the gate between them, and the weighted sum behind.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/moe_args.h"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

ASSAY_DEVICE float staged(float x, bool bfloat16) {
  return bfloat16 ? round_to_bf16(x) : x;
}

ASSAY_DEVICE float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

ASSAY_DEVICE float activated(float x, Act act) {
  switch (act) {
    case Act::silu: return x * sigmoid(x);
    case Act::gelu: return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case Act::gelu_tanh: return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
    default: return x > 0 || x != x ? x : 0.0f;
  }
}

ASSAY_DEVICE float gated_value(float gate, float up, const GateArgs& args) {
  const bool rounds = args.bfloat16;
  if (args.act != Act::gpt_oss) return staged(staged(activated(gate, args.act), rounds) * up, rounds);
  const float g = gate > args.limit ? args.limit : gate;
  const float u = up > args.limit ? args.limit : up < -args.limit ? -args.limit : up;
  const float share = staged(sigmoid(staged(g * 1.702f, rounds)), rounds);
  return staged(staged(u + 1.0f, rounds) * staged(g * share, rounds), rounds);
}

// A block column takes kThreads columns.
template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) gate_rows(GateArgs args) {
  const auto column = static_cast<std::int32_t>(block_index().y * kThreads + thread_id());
  if (column >= args.columns) return;
  for (std::int64_t row = block_index().x; row < args.rows; row += grid_size().x) {
    const float* from = args.x + row * args.x_pitch + static_cast<std::int64_t>(column) * args.step;
    args.out[row * args.out_pitch + column] = gated_value(from[args.gate_column], from[args.up_column], args);
  }
}

template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) combine_rows(CombineArgs args) {
  const auto column = static_cast<std::int32_t>(block_index().y * kThreads + thread_id());
  if (column >= args.columns) return;
  for (std::int64_t token = block_index().x; token < args.tokens; token += grid_size().x) {
    float sum = 0;
    for (std::int64_t j = token * args.visits; j < (token + 1) * args.visits; ++j) {
      const float x = args.x[args.rows_of[j] * args.x_pitch + column];
      if (args.bfloat16)
        sum = round_to_bf16(sum + round_to_bf16(x * args.weights[j]));
      else
        sum = fmaf(x, args.weights[j], sum);
    }
    args.y[token * args.y_pitch + column] = sum;
  }
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
