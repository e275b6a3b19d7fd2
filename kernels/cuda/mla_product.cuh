// The products around absorbed MLA, one matrix a head:
//
//   y[t, h, o] = Σᵢ x[t, h, i] · W[h, i, o]
//
// queries into the latent space (128 terms, 512 results a head) and mixed latents out of it (512, 128). Both
// read far more weights than they compute with them: a block reads 128 columns of a head's matrix once for 8
// tokens. Four groups of threads have a quarter of the terms each, so that enough is asked for at once; a quarter's are summed in
// order, and the quarters in theirs: a token's bits are its own.
#pragma once

#include "kernels/cuda/attention_args.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/memory.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

constexpr unsigned kProductColumns = 128, kProductTokens = 8;
constexpr unsigned kProductThreads = kProductColumns * kProductGroups;

// sums[t] += terms of token t × weights of a column, of inputs [first, end). Terms lie `pitch` apart from token to token.
template <class W>
ASSAY_DEVICE void add_products(const float* terms, unsigned pitch, const W* w, std::uint64_t w_pitch,
                               unsigned first, unsigned end, float (&sums)[kProductTokens]) {
  constexpr unsigned kAhead = 16;  // weights that are asked for before the first is waited for
  unsigned i = first;
  for (; i + kAhead <= end; i += kAhead) {
    float factors[kAhead];
    ASSAY_UNROLL
    for (unsigned j = 0; j < kAhead; ++j) factors[j] = to_float(w[(i + j) * w_pitch]);
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
  for (; i < end; ++i) {
    const float factor = to_float(w[i * w_pitch]);
    ASSAY_UNROLL
    for (unsigned t = 0; t < kProductTokens; ++t) sums[t] = fmaf(terms[t * pitch + i], factor, sums[t]);
  }
}

// Grid: columns × heads × tokens. Shared memory: [kProductTokens, inputs up to whole fours] of float, then sums of
// the groups but the first.
template <class W, class Y>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kProductThreads, 2) mla_product(MlaProductArgs a) {
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
  const unsigned group = thread_id() / kProductColumns, in_block = thread_id() % kProductColumns;
  const unsigned column = block_index().x * kProductColumns + in_block;
  const unsigned quarter = (pitch / 4 + kProductGroups - 1) / kProductGroups * 4, begin = group * quarter;
  const unsigned end = begin + quarter < a.inputs ? begin + quarter : a.inputs;
  float sums[kProductTokens] = {};
  if (column < a.outputs)
    add_products(
        terms, pitch,
        static_cast<const W*>(a.w) + static_cast<std::uint64_t>(head) * a.inputs * a.outputs + column,
        a.outputs, begin, end, sums);
  float* others = terms + kProductTokens * pitch;  // [groups - 1, tokens, columns]
  ASSAY_UNROLL
  for (unsigned t = 0; t < kProductTokens; ++t) {
    if (group != 0) others[((group - 1) * kProductTokens + t) * kProductColumns + in_block] = sums[t];
  }
  sync_block();
  if (group == 0 && column < a.outputs) {
    ASSAY_UNROLL
    for (unsigned t = 0; t < kProductTokens; ++t) {
      ASSAY_UNROLL
      for (unsigned g = 0; g + 1 < kProductGroups; ++g)
        sums[t] += others[(g * kProductTokens + t) * kProductColumns + in_block];
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
