// What attention kernels share: products of 16 rows with tiles in shared memory on tensor cores, the softmax
// of a row taken in pieces, and the end of a row.
//
//   element   tensor cores multiply                            u_acc
//   bf16      the numbers as they are; weights rounded to bf16  2^-24 beside the roundings of the arithmetic
//   float     each number as a sum of two tf32: x = h + l,      2^-21
//             |x - h - l| ≤ 2^-22 |x|, products hh + hl + lh
//
//   wide_bf16 bfloat16 numbers that lie as float32, by tf32,     as bf16
//             which holds them: the same products
//
// 2^-21: what is left out of a product is 3 · 2^-22 of it; and since tensor cores cut sums off instead of
// rounding them, no sum in them is longer than one tile (64 terms, 24 steps): tiles are added up outside, to
// nearest.
//
// A fragment is as mma wants it (PTX ISA, "Matrix fragments for mma.m16n8k16"): lane 4g + t holds, of a 16 ×
// 8 result, rows g and g + 8 of columns 2t and 2t + 1.
#pragma once

#include "kernels/cuda/attention_args.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/mma.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

constexpr float kNoScore = -__builtin_huge_valf();
constexpr float kLog2E = 1.4426950408889634f;

// Of what is the same in every round of a loop: what is made of it is made anew, not held in registers.
ASSAY_DEVICE std::uint32_t anew(std::uint32_t x) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(x));
#endif
  return x;
}

template <class T>
struct TileMath;

template <>
struct TileMath<bf16> {
  static constexpr unsigned kStep = 16;   // terms of one product of fragments
  static constexpr unsigned kVector = 8;  // elements of 16 bytes
  struct Left {
    std::uint32_t a[4];
  };
  struct Right {  // of two neighbouring tiles of 8 columns
    std::uint32_t b[4];
  };

  // Of words that lie in registers (32 bytes of each row: word t and t + 4 of rows g and g + 8).
  static ASSAY_DEVICE Left left_of(const std::uint32_t (&words)[4]) {
    return {{words[0], words[1], words[2], words[3]}};
  }
  // Rows 0 … 15, columns 0 … 15 of `rows`.
  static ASSAY_DEVICE Left left(const bf16* rows, unsigned pitch) {
    Left f;
    ldmatrix_x4(f.a, rows + lane_id() % 16 * pitch + lane_id() / 16 * 8);
    return f;
  }
  // Weights as they came out of a product, tiles 2 i and 2 i + 1 of 8 keys: already a fragment.
  template <int kTiles>
  static ASSAY_DEVICE Left left(const float (&p)[kTiles][4], int i) {
    return {{pack_bf16(p[2 * i][0], p[2 * i][1]), pack_bf16(p[2 * i][2], p[2 * i][3]),
             pack_bf16(p[2 * i + 1][0], p[2 * i + 1][1]), pack_bf16(p[2 * i + 1][2], p[2 * i + 1][3])}};
  }
  // The left fragment of weights that lie in shared memory, to meet right_down().
  static ASSAY_DEVICE Left left_weights(const bf16* rows, unsigned pitch) { return left(rows, pitch); }
  // 16 rows of `rows` are the columns of the product, 16 of its columns the terms: keys.
  static ASSAY_DEVICE Right right_across(const bf16* rows, unsigned pitch) {
    Right f;
    ldmatrix_x4(f.b, rows + (lane_id() / 16 * 8 + lane_id() % 8) * pitch + lane_id() / 8 % 2 * 8);
    return f;
  }
  // 16 rows are the terms, 16 columns the columns: values.
  static ASSAY_DEVICE Right right_down(const bf16* rows, unsigned pitch) {
    Right f;
    ldmatrix_x4_trans(f.b, rows + lane_id() % 16 * pitch + lane_id() / 16 * 8);
    return f;
  }
  static ASSAY_DEVICE void multiply(const Left& l, const Right& r, float (&even)[4], float (&odd)[4]) {
    mma_m16n8k16<bf16>(even, l.a, {r.b[0], r.b[1]});
    mma_m16n8k16<bf16>(odd, l.a, {r.b[2], r.b[3]});
  }
};

template <>
struct TileMath<float> {
  static constexpr unsigned kStep = 8;
  static constexpr unsigned kVector = 4;
  struct Left {
    std::uint32_t high[4], low[4];
  };
  using Right = Left;

  static ASSAY_DEVICE Left split(float a, float b, float c, float d) {
    const float x[4] = {a, b, c, d};
    Left f;
    ASSAY_UNROLL
    for (int i = 0; i < 4; ++i) {
      f.high[i] = to_tf32(x[i]);
      f.low[i] = to_tf32(x[i] - float_of(f.high[i]));
    }
    return f;
  }
  static ASSAY_DEVICE Left left_of(const std::uint32_t (&words)[4]) {
    return split(float_of(anew(words[0])), float_of(anew(words[1])), float_of(anew(words[2])),
                 float_of(anew(words[3])));
  }
  static ASSAY_DEVICE Left left(const float* rows, unsigned pitch) {
    const float* at = rows + lane_id() / 4 * pitch + lane_id() % 4;
    return split(at[0], at[8 * pitch], at[4], at[8 * pitch + 4]);
  }
  // Weights and values are summed over keys, in whatever order: term t is key 2t and term t + 4 is key 2t +
  // 1, so that weights need not move to other lanes.
  template <int kTiles>
  static ASSAY_DEVICE Left left(const float (&p)[kTiles][4], int i) {
    return split(p[i][0], p[i][2], p[i][1], p[i][3]);
  }
  static ASSAY_DEVICE Left left_weights(const float* rows, unsigned pitch) {
    const float* at = rows + lane_id() / 4 * pitch + lane_id() % 4 * 2;
    return split(at[0], at[8 * pitch], at[1], at[8 * pitch + 1]);
  }
  static ASSAY_DEVICE Right right_across(const float* rows, unsigned pitch) {
    const float* at = rows + lane_id() / 4 * pitch + lane_id() % 4;
    return split(at[0], at[4], at[8 * pitch], at[8 * pitch + 4]);
  }
  static ASSAY_DEVICE Right right_down(const float* rows, unsigned pitch) {
    const float* at = rows + lane_id() % 4 * 2 * pitch + lane_id() / 4;
    return split(at[0], at[pitch], at[8], at[pitch + 8]);
  }
  static ASSAY_DEVICE void multiply(const Left& l, const Right& r, float (&even)[4], float (&odd)[4]) {
    mma_m16n8k8_tf32(even, l.low, {r.high[0], r.high[1]});
    mma_m16n8k8_tf32(odd, l.low, {r.high[2], r.high[3]});
    mma_m16n8k8_tf32(even, l.high, {r.low[0], r.low[1]});
    mma_m16n8k8_tf32(odd, l.high, {r.low[2], r.low[3]});
    mma_m16n8k8_tf32(even, l.high, {r.high[0], r.high[1]});
    mma_m16n8k8_tf32(odd, l.high, {r.high[2], r.high[3]});
  }
};

template <>
struct TileMath<wide_bf16> {
  static constexpr unsigned kStep = 8;
  static constexpr unsigned kVector = 4;
  struct Left {
    std::uint32_t a[4];
  };
  using Right = Left;

  static ASSAY_DEVICE std::uint32_t word(wide_bf16 x) { return bits_of(x.value); }
  static ASSAY_DEVICE std::uint32_t rounded(float x) { return bits_of(round_to_bf16(x)); }
  static ASSAY_DEVICE Left left(const wide_bf16* rows, unsigned pitch) {
    const wide_bf16* at = rows + lane_id() / 4 * pitch + lane_id() % 4;
    return {{word(at[0]), word(at[8 * pitch]), word(at[4]), word(at[8 * pitch + 4])}};
  }
  // Terms are keys in the order of TileMath<float>.
  template <int kTiles>
  static ASSAY_DEVICE Left left(const float (&p)[kTiles][4], int i) {
    return {{rounded(p[i][0]), rounded(p[i][2]), rounded(p[i][1]), rounded(p[i][3])}};
  }
  static ASSAY_DEVICE Right right_across(const wide_bf16* rows, unsigned pitch) {
    const wide_bf16* at = rows + lane_id() / 4 * pitch + lane_id() % 4;
    return {{word(at[0]), word(at[4]), word(at[8 * pitch]), word(at[8 * pitch + 4])}};
  }
  static ASSAY_DEVICE Right right_down(const wide_bf16* rows, unsigned pitch) {
    const wide_bf16* at = rows + lane_id() % 4 * 2 * pitch + lane_id() / 4;
    return {{word(at[0]), word(at[pitch]), word(at[8]), word(at[pitch + 8])}};
  }
  static ASSAY_DEVICE void multiply(const Left& l, const Right& r, float (&even)[4], float (&odd)[4]) {
    mma_m16n8k8_tf32(even, l.a, {r.a[0], r.a[1]});
    mma_m16n8k8_tf32(odd, l.a, {r.a[2], r.a[3]});
  }
};

ASSAY_DEVICE std::int32_t row_of(const std::int32_t* pages, unsigned page_rows, unsigned position) {
  if (pages == nullptr) return static_cast<std::int32_t>(position);
  return pages[position / page_rows] * static_cast<std::int32_t>(page_rows) +
         static_cast<std::int32_t>(position % page_rows);
}

// Which query and head a row is, and which keys it sees: [low, high). A row beyond the last sees none.
struct RowPlace {
  bool exists;
  unsigned query, head;
  unsigned low, high;
};
ASSAY_DEVICE RowPlace row_place(const AttentionArgs& a, const SequenceArgs& sequence,
                                const AttentionWork& work, unsigned kv_head, unsigned row) {
  const unsigned group = a.heads / a.kv_heads;
  RowPlace place;
  place.query = row / group;
  place.head = kv_head * group + row % group;
  place.exists = place.query < sequence.queries;
  place.low = work.key_begin;
  place.high = 0;
  if (!place.exists) return place;
  const unsigned seen = sequence.key_count - sequence.queries + place.query + 1;
  if (a.window != 0 && seen > a.window && seen - a.window > place.low) place.low = seen - a.window;
  place.high = seen < work.key_end ? seen : work.key_end;
  return place;
}

// A score as a power of two: log₂e · cap(scale · product).
ASSAY_DEVICE float score_of(const AttentionArgs& a, float product) {
  if (a.cap_factor == 0) return product * a.score_factor;
  return a.cap_factor * tanhf(product * a.score_factor);
}

// 2^(m - top); of no score at all: 0, also where `top` is none.
ASSAY_DEVICE float share(float m, float top) {
  return m == kNoScore ? 0.0f : fast_exp2(m - top);
}
// The largest score so far as something to subtract, also where there is none.
ASSAY_DEVICE float base_of(float m) {
  return m == kNoScore ? 0.0f : m;
}

// What a row's sums over `parts` parts are multiplied by: part i's by shares, all by `inverse`, that of `sum`. The sink is
// one more score, counted here and nowhere else. A row that saw nothing is zeros; a NaN stays one.
struct RowEnd {
  float top, inverse;
  float sum = 0;
};
template <class MaximumOf, class SumOf>
ASSAY_DEVICE RowEnd end_of_row(unsigned parts, MaximumOf maximum_of, SumOf sum_of, const float* sink) {
  const float sink_score = sink == nullptr ? kNoScore : *sink * kLog2E;
  RowEnd end = {sink_score, 0};
  for (unsigned i = 0; i < parts; ++i) end.top = fmaxf(end.top, maximum_of(i));
  for (unsigned i = 0; i < parts; ++i) end.sum = fmaf(sum_of(i), share(maximum_of(i), end.top), end.sum);
  end.sum += share(sink_score, end.top);
  end.inverse = end.sum == 0 ? 0.0f : 1.0f / end.sum;
  return end;
}

ASSAY_DEVICE void store_result(const AttentionArgs& a, const SequenceArgs& sequence, unsigned query,
                               unsigned head, unsigned column, float value) {
  float* row = a.out + (sequence.first + query) * a.out_stride;
  row[head * a.v_dim + column] = a.round_out ? round_to_bf16(value) : value;
}

// Where the sums of row `row` of the block's tile go, of those that are merged.
ASSAY_DEVICE std::uint64_t partial_slot(const AttentionArgs& a, unsigned partial, unsigned kv_head,
                                        unsigned row) {
  return (static_cast<std::uint64_t>(partial) * a.kv_heads + kv_head) * a.tiling.rows + row;
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
