// What the products take, made of what they are given: x as planes of bfloat16, as float32, or quantized,
// rows of it gathered for experts; W with rows that begin at multiples of 16 bytes, GGUF's blocks taken
// apart. Everything is padded with zeros to 16 bytes, as gemm_args.h demands.
#pragma once

#include "kernels/cuda/gemm_codes.cuh"
#include "kernels/cuda/gemm_prepare_args.h"
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

ASSAY_DEVICE float magnitude(float x) {
  return float_of(bits_of(x) & 0x7FFFFFFFu);
}
ASSAY_DEVICE bool not_finite(float x) {
  return (bits_of(x) & 0x7F800000u) == 0x7F800000u;
}
// BlockQuantizer::scale_for(): by IEEE division.
ASSAY_DEVICE float scale_of(float largest, float limit) {
  if (largest == 0) return 1;
  const float scale = largest / limit;
  return scale < 0x1p-126f ? 0x1p-126f : scale;
}
// To nearest even; below 2^-6 a code is a multiple of 2^-9, and from 464 on the largest one is taken.
ASSAY_DEVICE std::uint8_t e4m3_code(float x) {
  const std::uint32_t bits = bits_of(x), magnitude = bits & 0x7FFFFFFFu, sign = bits >> 24 & 0x80u;
  if (magnitude >= 0x43E80000u) return static_cast<std::uint8_t>(sign | 0x7Eu);
  if (magnitude < 0x3C800000u) {  // by an addition whose last bit is worth 2^-9
    const std::uint32_t shifted = bits_of(float_of(magnitude) + 0x1p14f);
    return static_cast<std::uint8_t>(sign | (shifted - 0x46800000u));
  }
  const std::uint32_t rounded = magnitude + 0x7FFFFu + (magnitude >> 20 & 1u);
  return static_cast<std::uint8_t>(sign | ((rounded >> 20) - (120u << 3)));
}

// E4M3 with a scale for 1 × 128: codes to `out`, and where asked for what they stand for, in float32.
// A float32 template for the sake of one definition a program.
template <bool kDequantized>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kPrepareThreads, 1) quantize_fp8(PrepareArgs args) {
  const RowBlock at(args);
  if (!at.there) return;
  float x[4], largest = 0;
  bool bad = false;
  ASSAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    x[i] = element_of_x(args, at.row, at.column + i);
    bad = bad || not_finite(x[i]);
    largest = magnitude(x[i]) > largest ? magnitude(x[i]) : largest;
  }
  if (any(bad)) {
    if (lane_id() == 0) *args.bad = 1;
    return;
  }
  largest = warp_max(largest);
  const float scale = scale_of(largest < 1e-4f ? 1e-4f : largest, 448.0f);
  unsigned char* to = args.out + at.row * args.out_pitch;
  ASSAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    const std::int32_t column = at.column + i;
    if (column >= padded(args, kDequantized ? 4 : 1)) break;
    const std::uint8_t code = e4m3_code(x[i] / scale);
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
  float largest = 0;
  bool bad = false;
  for (auto c = static_cast<std::int32_t>(thread_id()); c < args.columns; c += kThreads) {
    const float x = element_of_x(args, row, c);
    bad = bad || not_finite(x);
    largest = magnitude(x) > largest ? magnitude(x) : largest;
  }
  if (bad) *args.bad = 1;
  largest = block_max<kThreads>(bad ? 0.0f : largest, shared_memory<float>());
  const float scale = scale_of(largest, 127.0f);
  for (auto c = static_cast<std::int32_t>(thread_id()); c < padded(args, 1); c += kThreads) {
    const float code = rintf(element_of_x(args, row, c) / scale);
    const float clamped = code > 127 ? 127.0f : code < -128 ? -128.0f : code;
    args.out[row * args.out_pitch + c] =
        static_cast<unsigned char>(static_cast<std::int8_t>(not_finite(code) ? 0 : clamped));
  }
  if (thread_id() == 0) args.scales[row] = scale;
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
