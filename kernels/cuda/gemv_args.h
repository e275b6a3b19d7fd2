// What the products of few tokens are told: y = x · Wᵀ for at most kMostTokens of them.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemm_args.h"

namespace assay::cuda {

inline constexpr int kMostTokens = 8;

struct GemvArgs {
  std::int32_t tokens = 0, outputs = 0, inputs = 0;
  // [tokens, inputs]: float32; int8 codes where x_scales is given, one for a token. Padded with zeros to 16
  // bytes as W is.
  const void* x = nullptr;
  std::int64_t x_pitch = 0;  // bytes
  const float* x_scales = nullptr;

  GemmWeight weight;
  std::int64_t w_pitch = 0;
  std::int32_t block_rows = 1, block_columns = 1, scale_columns = 1, first_row = 0;  // as in GemmArgs
  bool round_weight = false;  // to bfloat16, before it is multiplied

  // Inputs [s · split, (s + 1) · split) are summed by blocks (·, s); sums of several splits go to `parts`
  // [splits, tokens, outputs], float32 or int32. Of each four outputs, the warp that comes last adds them up in the order
  // of s: `arrived` counts them, a word for every warp of a split, 0 before and after.
  std::int32_t split = 0, splits = 1;
  void* parts = nullptr;
  std::uint32_t* arrived = nullptr;

  float* y = nullptr;
  std::int64_t y_pitch = 0;  // elements
  Finish finish = Finish::float32;
};

// Products of one launch: q, k and v of a layer, its gate and up. Block (b, ·) is of the last whose first block is not
// behind b; tokens, codes and splits are the same of all.
struct GemvProducts {
  static constexpr std::uint32_t kMost = 4;
  GemvArgs of[kMost];
  std::uint32_t first_block[kMost] = {};
  std::uint32_t count = 0;
};

}  // namespace assay::cuda
