// What the products take, made of what they are given: x as planes of bfloat16, as float32, or quantized,
// rows of it gathered for experts; W with rows that begin at multiples of 16 bytes, GGUF's blocks taken
// apart. Everything is padded with zeros to 16 bytes, as gemm_args.h demands.
#pragma once

#include "kernels/cuda/gemm_codes.cuh"
#include "kernels/cuda/gemm_prepare_args.h"
#include "kernels/cuda/quantize_number.cuh"
#include "kernels/cuda/reduce.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

ASSAY_DEVICE float element_of_x(const PrepareArgs& args, std::int64_t row, std::int32_t column) {
  if (column >= args.columns) return 0;
  const std::int64_t from = args.gather == nullptr ? row : args.gather[row];
  return args.x[from * args.x_stride + column];
}

// A warp a row and 128 columns of it: four a lane.
struct RowBlock {
  std::int64_t row;
  std::int32_t block, column;  // number of the block; the lane's first column
  bool there;
  ASSAY_DEVICE explicit RowBlock(const PrepareArgs& args) {
    const std::int32_t blocks = (args.columns + 127) / 128;
    const std::int64_t at = static_cast<std::int64_t>(block_index().x) * (kPrepareThreads / 32) + warp_id();
    row = at / blocks;
    block = static_cast<std::int32_t>(at % blocks);
    column = block * 128 + static_cast<std::int32_t>(lane_id()) * 4;
    there = row < args.rows;
  }
};

// Columns rounded up to what fills 16 bytes.
ASSAY_DEVICE std::int32_t padded(const PrepareArgs& args, std::int32_t element_bytes) {
  const std::int32_t filling = 16 / element_bytes;
  return (args.columns + filling - 1) / filling * filling;
}

// kPlanes planes of bfloat16 whose sum is x: one, of what are bfloat16 numbers already, or three. 0: float32.
template <int kPlanes>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kPrepareThreads, 1) split_planes(PrepareArgs args) {
  const RowBlock at(args);
  if (!at.there) return;
  ASSAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    const std::int32_t column = at.column + i;
    if (column >= padded(args, kPlanes == 0 ? 4 : 2)) break;
    float x = element_of_x(args, at.row, column);
    unsigned char* to = args.out + at.row * args.out_pitch;
    if constexpr (kPlanes == 0) reinterpret_cast<float*>(to)[column] = x;
    ASSAY_UNROLL
    for (int plane = 0; plane < kPlanes; ++plane) {
      const float leading = leading_part(x);
      reinterpret_cast<bf16*>(to + plane * args.out_plane)[column] = {
          static_cast<std::uint16_t>(bits_of(leading) >> 16)};
      x = rest_behind(x, leading);
    }
  }
}

// E4M3 with a scale for 1 × 128: codes to `out`, or what they stand for in float32.
template <bool kDequantized>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kPrepareThreads, 1) quantize_fp8(PrepareArgs args) {
  const RowBlock at(args);
  if (!at.there) return;
  float x[4], amax = 0;
  ASSAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    x[i] = element_of_x(args, at.row, at.column + i);
    amax = Maximum()(fabsf(x[i]), amax);
  }
  amax = warp_max(amax);
  const bool finite = amax < INFINITY;  // false for NaN
  if (!finite && lane_id() == 0) *args.bad = 1;
  const float scale = finite ? scale_of(amax, Code::e4m3, false) : 1.0f;
  unsigned char* to = args.out + at.row * args.out_pitch;
  ASSAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    const std::int32_t column = at.column + i;
    if (column >= padded(args, kDequantized ? 4 : 1)) break;
    const std::uint8_t code = code_of(x[i] / scale, Code::e4m3);
    if constexpr (kDequantized)
      reinterpret_cast<float*>(to)[column] = to_float(e4m3{code}) * scale;
    else
      to[column] = code;
  }
  if (lane_id() == 0 && args.scales != nullptr)
    args.scales[at.row * ((args.columns + 127) / 128) + at.block] = scale;
}

// INT8 with a scale a row: a block a row.
template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) quantize_int8(PrepareArgs args) {
  const std::int64_t row = block_index().x;
  float amax = 0;
  for (auto c = static_cast<std::int32_t>(thread_id()); c < args.columns; c += kThreads)
    amax = Maximum()(fabsf(element_of_x(args, row, c)), amax);
  amax = block_max<kThreads>(amax, shared_memory<float>());
  const bool finite = amax < INFINITY;
  const float scale = finite ? scale_of(amax, Code::i8, false) : 1.0f;
  for (auto c = static_cast<std::int32_t>(thread_id()); c < padded(args, 1); c += kThreads)
    args.out[row * args.out_pitch + c] = finite ? code_of(element_of_x(args, row, c) / scale, Code::i8) : 0;
  if (thread_id() != 0) return;
  args.scales[row] = scale;
  if (!finite) *args.bad = 1;
}

// --- W

// Rows of bytes to rows that begin at multiples of 16.
template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) align_rows(RepackArgs args) {
  for (std::int64_t row = block_index().x; row < args.rows; row += grid_size().x) {
    for (std::int64_t b = thread_id(); b < args.out_pitch; b += kThreads)
      args.out[row * args.out_pitch + b] = b < args.row_bytes ? args.codes[row * args.row_bytes + b] : 0;
  }
}

// Q8_0: blocks of a float16 scale and 32 codes, 34 bytes, to codes on end and a scale for 1 × 32.
template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) unpack_q8_0(RepackArgs args) {
  constexpr std::int64_t kBlock = 34;
  const std::int64_t blocks = args.row_bytes / kBlock;
  for (std::int64_t row = block_index().x; row < args.rows; row += grid_size().x) {
    const unsigned char* from = args.codes + row * args.row_bytes;
    for (std::int64_t b = thread_id(); b < args.out_pitch; b += kThreads)
      args.out[row * args.out_pitch + b] = b < blocks * 32 ? from[b / 32 * kBlock + 2 + b % 32] : 0;
    for (std::int64_t b = thread_id(); b < blocks; b += kThreads) {
      const auto bits = static_cast<std::uint16_t>(from[b * kBlock] | from[b * kBlock + 1] << 8);
      args.scales[row * blocks + b] = to_float(f16{bits});
    }
  }
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
