// The products around absorbed MLA, one matrix a head:
//
//   y[t, h, o] = Σᵢ x[t, h, i] · W[h, i, o]
//
// queries into the latent space (128 terms, 512 results a head) and mixed latents out of it (512, 128). Both
// read far more weights than they compute with them: a block reads 128 columns of a head's matrix once for 8
// tokens. A sum runs over its terms in order, in one thread, so that a token's bits are its own.
#pragma once

#include "kernels/cuda/attention_args.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/memory.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

constexpr unsigned kProductThreads = 128, kProductTokens = 8;

// Grid: columns × heads × tokens. Shared memory: [kProductTokens, inputs up to whole fours] of float.
template <class W, class Y>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(128, 4) mla_product(MlaProductArgs a) {
  const unsigned head = block_index().y, first = block_index().z * kProductTokens;
  const unsigned tokens = a.tokens - first < kProductTokens ? a.tokens - first : kProductTokens;
  const float* x = static_cast<const float*>(a.x) + first * a.x_stride + head * a.x_head;
  Y* y = static_cast<Y*>(a.y) + first * a.y_stride + head * a.y_head;
  float* terms = shared_memory<float>();
  const unsigned pitch = (a.inputs + 3) / 4 * 4;  // of a token's
  for (unsigned i = thread_id(); i < kProductTokens * a.inputs; i += kProductThreads) {
    const unsigned t = i / a.inputs, c = i % a.inputs;
    terms[t * pitch + c] = t < tokens ? x[t * a.x_stride + c] : 0.0f;
  }
  sync_block();
  const unsigned column = block_index().x * kProductThreads + thread_id();
  if (column < a.outputs) {
    const W* w =
        static_cast<const W*>(a.w) + static_cast<std::uint64_t>(head) * a.inputs * a.outputs + column;
    float sums[kProductTokens] = {};
    const auto add = [&](unsigned i, float factor) {
      ASSAY_UNROLL
      for (unsigned t = 0; t < kProductTokens; ++t) sums[t] = fmaf(terms[t * pitch + i], factor, sums[t]);
    };
    const auto factor_at = [&](unsigned i) { return to_float(w[static_cast<std::uint64_t>(i) * a.outputs]); };
    // So many weights are asked for before the first is waited for: a block has too few threads to wait one by one. Of
    // terms, four of a token are read at once.
    constexpr unsigned kAhead = 32;
    unsigned i = 0;
    for (; i + kAhead <= a.inputs; i += kAhead) {
      float factors[kAhead];
      ASSAY_UNROLL
      for (unsigned j = 0; j < kAhead; ++j) factors[j] = factor_at(i + j);
      ASSAY_UNROLL
      for (unsigned j = 0; j < kAhead; j += 4) {
        ASSAY_UNROLL
        for (unsigned t = 0; t < kProductTokens; ++t) {
          const Quad four = *reinterpret_cast<const Quad*>(terms + t * pitch + i + j);
          ASSAY_UNROLL
          for (unsigned k = 0; k < 4; ++k) sums[t] = fmaf(four.v[k], factors[j + k], sums[t]);
        }
      }
    }
    for (; i < a.inputs; ++i) add(i, factor_at(i));
    ASSAY_UNROLL
    for (unsigned t = 0; t < kProductTokens; ++t) {
      if (t < tokens) y[t * a.y_stride + column] = from_float<Y>(a.round ? round_to_bf16(sums[t]) : sums[t]);
    }
  }
  if (block_index().x != 0 || a.y_tail == 0) return;
  for (unsigned i = thread_id(); i < tokens * a.y_tail; i += kProductThreads) {
    const unsigned t = i / a.y_tail, c = i % a.y_tail;
    const std::uint64_t from = t * a.x_stride + a.inputs + c;
    y[t * a.y_stride + a.outputs + c] = from_float<Y>(c < a.x_tail ? x[from] : 0.0f);
  }
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
