// y = x · Wᵀ for few tokens, where reading W is all the time there is: each byte of it once, 16 at a time.
//
// A warp computes four outputs. Lane l takes chunks l, l + 32, l + 64 … of 16 bytes of each of the four rows,
// decodes them to float32, scales included, and multiplies them with every token; the lanes' sums are added
// in a butterfly. K is split so that enough of memory is asked for at once; the splits are as long whatever
// the number of tokens, and added up in their order by whichever warp is the last of those of four outputs: a token's
// result depends neither on the others nor on chance. Int8 sums are int32, exact, and scaled once.
#pragma once

#include "kernels/cuda/gemm_codes.cuh"
#include "kernels/cuda/gemm_tile.cuh"
#include "kernels/cuda/gemv_args.h"
#include "kernels/cuda/reduce.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

inline constexpr int kGemvRows = 4, kGemvThreads = 128;

struct alignas(16) Chunk {
  std::uint32_t words[4];
};

ASSAY_DEVICE std::int32_t dot4(std::uint32_t a, std::uint32_t b, std::int32_t sum) {
#ifdef __CUDA_ARCH__
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
#else
  for (int i = 0; i < 4; ++i)
    sum += static_cast<std::int8_t>(a >> 8 * i & 0xFFu) * static_cast<std::int8_t>(b >> 8 * i & 0xFFu);
  return sum;
#endif
}

// Float32 sums of W decoded.
template <class Codes>
struct DecodedDot {
  using Sum = float;
  static constexpr int kElements = 16 / Codes::kBytes;  // of a chunk
  static constexpr int kXBytes = 4;

  struct W {
    float values[kElements];
  };
  // Elements from `input` on of the row of output `output`.
  ASSAY_DEVICE static W w(const GemvArgs& args, const Chunk& chunk, std::int64_t scales, std::int32_t input) {
    W w;
    if constexpr (Codes::kBytes == 4) {
      ASSAY_UNROLL
      for (int i = 0; i < 4; ++i) w.values[i] = float_of(chunk.words[i]);
    } else {
      ASSAY_UNROLL
      for (int i = 0; i < kElements; i += 8)
        Codes::decode8(chunk.words + i * Codes::kBytes / 4, w.values + i);
    }
    if constexpr (Codes::kBytes == 1) {
      const float scale =
          args.weight.scales[scales + (args.scale_columns == 1 ? 0 : input / args.block_columns)];
      ASSAY_UNROLL
      for (int i = 0; i < kElements; ++i) w.values[i] *= scale;
    }
    if (args.round_weight) {
      ASSAY_UNROLL
      for (int i = 0; i < kElements; ++i) w.values[i] = round_to_bf16(w.values[i]);
    }
    return w;
  }
  struct X {
    float values[kElements];
  };
  ASSAY_DEVICE static X x(const GemvArgs& args, int token, std::int32_t input) {
    const auto* row =
        reinterpret_cast<const Chunk*>(static_cast<const unsigned char*>(args.x) + token * args.x_pitch +
                                       static_cast<std::int64_t>(input) * 4);
    X x;
    ASSAY_UNROLL
    for (int i = 0; i < kElements / 4; ++i) {
      // What is padded to 16 bytes of W's codes is not of x's floats.
      const Chunk four = input + 4 * i < args.inputs ? row[i] : Chunk{};
      ASSAY_UNROLL
      for (int j = 0; j < 4; ++j) x.values[4 * i + j] = float_of(four.words[j]);
    }
    return x;
  }
  ASSAY_DEVICE static float add(float sum, const X& x, const W& w) {
    ASSAY_UNROLL
    for (int i = 0; i < kElements; ++i) sum = fmaf(x.values[i], w.values[i], sum);
    return sum;
  }
  ASSAY_DEVICE static float scaled(const GemvArgs&, float sum, int, std::int32_t) { return sum; }
};

// Exact sums of integers.
struct Int8Dot {
  using Sum = std::int32_t;
  static constexpr int kElements = 16, kXBytes = 1;
  using W = Chunk;
  using X = Chunk;
  ASSAY_DEVICE static W w(const GemvArgs&, const Chunk& chunk, std::int64_t, std::int32_t) { return chunk; }
  ASSAY_DEVICE static X x(const GemvArgs& args, int token, std::int32_t input) {
    return *reinterpret_cast<const Chunk*>(static_cast<const unsigned char*>(args.x) + token * args.x_pitch +
                                           input);
  }
  ASSAY_DEVICE static std::int32_t add(std::int32_t sum, const X& x, const W& w) {
    ASSAY_UNROLL
    for (int i = 0; i < 4; ++i) sum = dot4(x.words[i], w.words[i], sum);
    return sum;
  }
  ASSAY_DEVICE static float scaled(const GemvArgs& args, std::int32_t sum, int token, std::int32_t output) {
    return static_cast<float>(sum) * args.x_scales[token] *
           args.weight.scales[(args.first_row + output) / args.block_rows];
  }
};

template <class Dot>
ASSAY_DEVICE void store_dot(const GemvArgs& args, int token, std::int32_t output, typename Dot::Sum sum) {
  const float bias = args.weight.bias == nullptr ? 0.0f : args.weight.bias[output];
  args.y[token * args.y_pitch + output] = finished(args.finish, Dot::scaled(args, sum, token, output), bias);
}

// Of the warps that sum the same outputs, each of another split: true for the one that comes last, which sees what all
// have written.
ASSAY_DEVICE bool comes_last(const GemvArgs& args) {
  std::uint32_t* arrived = args.arrived + block_index().x * (kGemvThreads / 32) + warp_id();
  std::uint32_t before = 0;
  if (lane_id() == 0) {
    fence_device();
    before = atomic_add(arrived, std::uint32_t{1});
  }
  if (shuffle_idx(before, 0) + 1 != static_cast<std::uint32_t>(args.splits)) return false;
  fence_device();
  if (lane_id() == 0) *arrived = 0;
  return true;
}

// Adds up the splits of the outputs from `first` on; a lane an element of y.
template <class Dot>
ASSAY_DEVICE void sum_splits(const GemvArgs& args, std::int32_t first) {
  const auto* parts = static_cast<const typename Dot::Sum*>(args.parts);
  const std::int64_t size = static_cast<std::int64_t>(args.tokens) * args.outputs;
  for (auto i = static_cast<std::int32_t>(lane_id()); i < kGemvRows * args.tokens; i += 32) {
    const std::int32_t token = i / kGemvRows, output = first + i % kGemvRows;
    if (output >= args.outputs) continue;
    typename Dot::Sum sum = 0;
    for (std::int32_t s = 0; s < args.splits; ++s)
      sum += load_fresh(parts + s * size + static_cast<std::int64_t>(token) * args.outputs + output);
    store_dot<Dot>(args, token, output, sum);
  }
}

ASSAY_DEVICE unsigned product_of_block(const GemvProducts& products) {
  unsigned product = 0;
  while (product + 1 < products.count && block_index().x >= products.first_block[product + 1]) ++product;
  return product;
}

// Grid: blocks of 16 outputs, of one product after the other × splits.
template <class Dot, int kTokens>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kGemvThreads, 1) gemv(ASSAY_READ_ONLY GemvProducts products) {
  using Sum = typename Dot::Sum;
  const unsigned product = product_of_block(products);
  const GemvArgs& args = products.of[product];
  const unsigned block = block_index().x - products.first_block[product];
  const auto first = static_cast<std::int32_t>((block * (kGemvThreads / 32) + warp_id()) * kGemvRows);
  if (first >= args.outputs) return;  // a whole warp; no barrier of the block follows
  const std::int32_t begin = static_cast<std::int32_t>(block_index().y) * args.split;
  const std::int32_t end = args.inputs - begin < args.split ? args.inputs : begin + args.split;
  constexpr int kWBytes = 16 / Dot::kElements;

  const unsigned char* rows[kGemvRows];
  std::int64_t scales[kGemvRows];
  ASSAY_UNROLL
  for (int r = 0; r < kGemvRows; ++r) {
    const std::int32_t output = first + r < args.outputs ? first + r : first;
    rows[r] = args.weight.codes + output * args.w_pitch;
    scales[r] = static_cast<std::int64_t>((args.first_row + output) / args.block_rows) * args.scale_columns;
  }
  Sum sums[kGemvRows][kTokens] = {};
  for (std::int32_t i = begin + static_cast<std::int32_t>(lane_id()) * Dot::kElements; i < end;
       i += 32 * Dot::kElements) {
    typename Dot::W w[kGemvRows];
    ASSAY_UNROLL
    for (int r = 0; r < kGemvRows; ++r)
      w[r] = Dot::w(args, *reinterpret_cast<const Chunk*>(rows[r] + static_cast<std::int64_t>(i) * kWBytes),
                    scales[r], i);
    ASSAY_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      if (t >= args.tokens) break;
      const typename Dot::X x = Dot::x(args, t, i);
      ASSAY_UNROLL
      for (int r = 0; r < kGemvRows; ++r) sums[r][t] = Dot::add(sums[r][t], x, w[r]);
    }
  }
  ASSAY_UNROLL
  for (int r = 0; r < kGemvRows; ++r) {
    ASSAY_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      if (t >= args.tokens) break;
      const Sum sum = warp_sum(sums[r][t]);
      if (lane_id() != 0 || first + r >= args.outputs) continue;
      if (args.splits == 1)
        store_dot<Dot>(args, t, first + r, sum);
      else
        static_cast<Sum*>(
            args.parts)[(static_cast<std::int64_t>(block_index().y) * args.tokens + t) * args.outputs +
                        first + r] = sum;
    }
  }
  if (args.splits > 1 && comes_last(args)) sum_splits<Dot>(args, first);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
