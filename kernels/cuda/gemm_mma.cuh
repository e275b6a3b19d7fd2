// y = x · Wᵀ on tensor cores by mma.sync: one source for all element types, from sm_80 on.
//
//   math          x in shared memory     W                   a step                        sums
//   Fp8Native     e4m3 codes             e4m3 codes          m16n8k32 e4m3, sm_89 on       float32
//   Fp8AsHalf     e4m3 codes             e4m3 codes          both to float16, m16n8k16     float32
//   Int8          s8 codes               s8 codes            m16n8k32 s8                   int32, exact
//   WeightOnly    planes of bfloat16     any codes           W to bfloat16, m16n8k16       float32
//
// Two levels of sums: `slabs_together` slabs of 32 products are summed on tensor cores; that partial sum is
// scaled and added in float32, rounded to nearest. So a scale enters once a block (DeepSeek-V3 technical
// report, §3.3.2; inference/kernel.py), and the few bits that tensor cores keep of FP8 products are lost over
// 128 terms only. Int8 sums to the end.
//
// Float32 activations are three planes of bfloat16, cut from them by the bits: products of 8 by 8 bits are
// exact in float32, so that f32 arithmetic needs no other unit. Float16 weights, of 11 bits, are two.
//
// A thread holds eight consecutive elements of a row in each slab: lane l those from 8 (l % 4) on, of rows
// and outputs l / 4. Which of the products of a step are "k = 0" is of no consequence as long as x and W
// agree, so the instruction's own order of k (mma.cuh) is not followed: fragments come by plain loads of 8 or
// 16 bytes.
#pragma once

#include <type_traits>

#include "kernels/cuda/gemm_codes.cuh"
#include "kernels/cuda/gemm_tile.cuh"
#include "kernels/cuda/mma.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// --- fragments from shared memory

// Where chunk c of row r lies. Threads that read at once read, of eight codes each, 2 chunks in each of four
// rows; of eight bfloat16, 4 chunks in each of two: together all 32 banks, once.
template <int kRowBytes, int kElementBytes>
struct FragmentPlace {
  ASSAY_DEVICE static int chunk(int row, int chunk) {
    if constexpr (kElementBytes == 2)
      return chunk ^ (row & 1) << 2;
    else if constexpr (kRowBytes == 128)
      return chunk ^ (row & 3) << 1;
    else
      return chunk ^ (row >> 1 & 1) << 1;
  }
};
template <int kRowBytes, int kElementBytes>
using FragmentRows = SharedRows<kRowBytes, FragmentPlace<kRowBytes, kElementBytes>>;

template <int kElementBytes>
struct alignas(8 * kElementBytes) Eight {
  std::uint32_t words[2 * kElementBytes];
};

// The thread's eight elements of row `row` in slab `slab`.
template <int kRowBytes, int kElementBytes>
ASSAY_DEVICE Eight<kElementBytes> load_eight(const unsigned char* rows, int row, int slab) {
  const int byte = (slab * kSlab + static_cast<int>(lane_id() % 4) * 8) * kElementBytes;
  const unsigned char* at = rows + FragmentRows<kRowBytes, kElementBytes>::offset(row, byte / 16) + byte % 16;
  return *reinterpret_cast<const Eight<kElementBytes>*>(at);
}

// --- what a step is

struct Fp8Math {
  static constexpr int kXBytes = 1, kWBytes = 1, kPlanes = 1, kDepth = 128;
  static constexpr bool kExact = false, kXScaled = true, kWScaled = true, kScaleFirst = false;
  using Total = float;
};

struct Fp8Native : Fp8Math {
  static constexpr float kUnit = 1;
  struct X {
    std::uint32_t a[4];
  };
  struct W {
    std::uint32_t b[2];
  };
  ASSAY_DEVICE static X x(const Eight<1>& upper, const Eight<1>& lower) {
    return {{upper.words[0], lower.words[0], upper.words[1], lower.words[1]}};
  }
  ASSAY_DEVICE static W w(const Eight<1>& codes, float) { return {{codes.words[0], codes.words[1]}}; }
  ASSAY_DEVICE static void multiply(float (&sum)[4], const X& x, const W& w) {
    mma_m16n8k32<e4m3>(sum, x.a, w.b);
  }
};

struct Fp8AsHalf : Fp8Math {
  static constexpr float kUnit = 1 / (kHalfOfE4m3 * kHalfOfE4m3);  // what a product of the halves lacks
  struct X {
    std::uint32_t a[2][4];
  };
  struct W {
    std::uint32_t b[2][2];
  };
  ASSAY_DEVICE static X x(const Eight<1>& upper, const Eight<1>& lower) {
    X x;
    ASSAY_UNROLL
    for (int step = 0; step < 2; ++step) {
      e4m3_to_half(upper.words[step], x.a[step][0], x.a[step][2]);
      e4m3_to_half(lower.words[step], x.a[step][1], x.a[step][3]);
    }
    return x;
  }
  ASSAY_DEVICE static W w(const Eight<1>& codes, float) {
    W w;
    ASSAY_UNROLL
    for (int step = 0; step < 2; ++step) e4m3_to_half(codes.words[step], w.b[step][0], w.b[step][1]);
    return w;
  }
  ASSAY_DEVICE static void multiply(float (&sum)[4], const X& x, const W& w) {
    ASSAY_UNROLL
    for (int step = 0; step < 2; ++step) mma_m16n8k16<f16>(sum, x.a[step], w.b[step]);
  }
};

struct Int8 {
  static constexpr int kXBytes = 1, kWBytes = 1, kPlanes = 1, kDepth = 128;
  static constexpr bool kExact = true, kXScaled = true, kWScaled = true, kScaleFirst = false;
  static constexpr float kUnit = 1;
  using Total = std::int32_t;
  using X = Fp8Native::X;
  using W = Fp8Native::W;
  ASSAY_DEVICE static X x(const Eight<1>& upper, const Eight<1>& lower) { return Fp8Native::x(upper, lower); }
  ASSAY_DEVICE static W w(const Eight<1>& codes, float scale) { return Fp8Native::w(codes, scale); }
  ASSAY_DEVICE static void multiply(std::int32_t (&sum)[4], const X& x, const W& w) {
    mma_m16n8k32<std::int8_t>(sum, x.a, w.b);
  }
};

// Of f32 arithmetic: x in three planes, W's codes exactly. Of bf16 arithmetic: x in one, W scaled and rounded
// to bfloat16 before it is multiplied.
template <class Codes, bool kBf16Arithmetic>
struct WeightOnly {
  static constexpr bool kScaledCodes = Codes::kBytes == 1;
  static constexpr int kXBytes = 2, kWBytes = Codes::kBytes, kPlanes = kBf16Arithmetic ? 1 : 3, kDepth = 64;
  static constexpr bool kExact = false, kXScaled = false, kWScaled = kScaledCodes && !kBf16Arithmetic,
                        kScaleFirst = kScaledCodes && kBf16Arithmetic;
  static constexpr float kUnit = 1;
  using Total = float;
  static constexpr int kParts = std::is_same_v<Codes, CodesF16> && !kBf16Arithmetic ? 2 : 1;
  struct X {
    std::uint32_t a[2][4];
  };
  struct W {
    std::uint32_t b[kParts][2][2];
  };
  ASSAY_DEVICE static X x(const Eight<2>& upper, const Eight<2>& lower) {
    return {{{upper.words[0], lower.words[0], upper.words[1], lower.words[1]},
             {upper.words[2], lower.words[2], upper.words[3], lower.words[3]}}};
  }
  ASSAY_DEVICE static W w(const Eight<kWBytes>& codes, float scale) {
    W w;
    if constexpr (std::is_same_v<Codes, CodesBf16>) {
      ASSAY_UNROLL
      for (int i = 0; i < 4; ++i) w.b[0][i / 2][i % 2] = codes.words[i];
    } else {
      float values[8];
      Codes::decode8(codes.words, values);
      ASSAY_UNROLL
      for (int i = 0; i < 4; ++i) {
        float &low = values[2 * i], &high = values[2 * i + 1];
        if constexpr (kBf16Arithmetic) {
          w.b[0][i / 2][i % 2] = pack_bf16(low * scale, high * scale);
        } else {
          ASSAY_UNROLL
          for (int part = 0; part < kParts; ++part) {
            const float low_part = leading_part(low), high_part = leading_part(high);
            w.b[part][i / 2][i % 2] = bf16_pair(low_part, high_part);
            low = rest_behind(low, low_part);
            high = rest_behind(high, high_part);
          }
        }
      }
    }
    return w;
  }
  ASSAY_DEVICE static void multiply(float (&sum)[4], const X& x, const W& w) {
    ASSAY_UNROLL
    for (int part = kParts - 1; part >= 0; --part) {
      ASSAY_UNROLL
      for (int step = 0; step < 2; ++step) mma_m16n8k16<bf16>(sum, x.a[step], w.b[part][step]);
    }
  }
};

// --- the kernel

ASSAY_DEVICE void wait_for_stage(int stages_ahead) {
  switch (stages_ahead) {
    case 0: return cp_async_wait<0>();
    case 1: return cp_async_wait<1>();
    case 2: return cp_async_wait<2>();
    case 3: return cp_async_wait<3>();
    default: return cp_async_wait<4>();
  }
}

// A block's tile is kDown × kAcross warps', a warp's kTall × kWide products of 16 × 8.
template <class Math, int kDown, int kAcross, int kTall, int kWide>
struct GemmMma {
  static constexpr int kRows = kDown * kTall * 16, kOutputs = kAcross * kWide * 8;
  static constexpr int kThreads = 32 * kDown * kAcross, kDepth = Math::kDepth;
  static constexpr int kXRow = kDepth * Math::kXBytes, kWRow = kDepth * Math::kWBytes;
  static constexpr int kXStage = kRows * kXRow, kStage = Math::kPlanes * kXStage + kOutputs * kWRow;
  using Total = typename Math::Total;

  const GemmArgs& args;
  const GemmTile tile;
  const int warp_row = static_cast<int>(warp_id()) / kAcross * kTall * 16;
  const int warp_output = static_cast<int>(warp_id()) % kAcross * kWide * 8;
  std::int32_t w_scale_at[kWide][2] = {};
  Total partial[kTall][kWide][4] = {};
  float sum[kTall][kWide][4] = {};

  ASSAY_DEVICE explicit GemmMma(const GemmArgs& a, unsigned block)
      : args(a), tile(find_tile(a, block, kRows, kOutputs)) {}

  // The rows of this thread's sums in product `down` of the warp's, and their outputs.
  ASSAY_DEVICE int row_of(int down, int half) const {
    return warp_row + down * 16 + half * 8 + static_cast<int>(lane_id()) / 4;
  }
  ASSAY_DEVICE int output_of(int across, int one) const {
    return tile.output + warp_output + across * 8 + static_cast<int>(lane_id()) % 4 * 2 + one;
  }
  ASSAY_DEVICE int last_output(int output) const { return output < args.outputs ? output : args.outputs - 1; }

  ASSAY_DEVICE void load(int step, int stage) const {
    unsigned char* const shared = shared_memory<unsigned char>(static_cast<unsigned>(stage * kStage));
    const std::int64_t begin = static_cast<std::int64_t>(step) * kDepth;
    const unsigned char* x = args.x + tile.row * args.x_pitch;
    ASSAY_UNROLL
    for (int plane = 0; plane < Math::kPlanes; ++plane)
      copy_rows<kRows, kThreads, FragmentRows<kXRow, Math::kXBytes>>(
          shared + plane * kXStage, x + plane * args.x_plane, args.x_pitch, tile.rows,
          static_cast<std::int64_t>(args.inputs) * Math::kXBytes, begin * Math::kXBytes);
    copy_rows<kOutputs, kThreads, FragmentRows<kWRow, Math::kWBytes>>(
        shared + Math::kPlanes * kXStage, tile.weight.codes + tile.output * args.w_pitch, args.w_pitch,
        args.outputs - tile.output, static_cast<std::int64_t>(args.inputs) * Math::kWBytes,
        begin * Math::kWBytes);
  }

  ASSAY_DEVICE void multiply_slab(int stage, int slab, std::int32_t input) {
    const unsigned char* const x = shared_memory<unsigned char>(static_cast<unsigned>(stage * kStage));
    const unsigned char* const w = x + Math::kPlanes * kXStage;
    const int group = static_cast<int>(lane_id()) / 4;
    typename Math::W of_w[kWide];
    ASSAY_UNROLL
    for (int across = 0; across < kWide; ++across) {
      float scale = 1;
      if constexpr (Math::kScaleFirst) {
        const int output = last_output(tile.output + warp_output + across * 8 + group);
        scale = tile.weight.scales[scale_row(args, output) + scale_column(args, input)];
      }
      of_w[across] =
          Math::w(load_eight<kWRow, Math::kWBytes>(w, warp_output + across * 8 + group, slab), scale);
    }
    ASSAY_UNROLL
    for (int down = 0; down < kTall; ++down) {
      // The smallest part first: tensor cores cut sums off, so that each step costs a bit of what is there by then.
      ASSAY_UNROLL
      for (int plane = Math::kPlanes - 1; plane >= 0; --plane) {
        const int row = warp_row + down * 16 + group;
        const auto of_x = Math::x(load_eight<kXRow, Math::kXBytes>(x + plane * kXStage, row, slab),
                                  load_eight<kXRow, Math::kXBytes>(x + plane * kXStage, row + 8, slab));
        ASSAY_UNROLL
        for (int across = 0; across < kWide; ++across)
          Math::multiply(partial[down][across], of_x, of_w[across]);
      }
    }
  }

  // Adds the partial sums, of the block of inputs that `input` lies in, to the sums.
  ASSAY_DEVICE void promote(std::int32_t input) {
    float w_scale[kWide][2];
    ASSAY_UNROLL
    for (int across = 0; across < kWide; ++across) {
      ASSAY_UNROLL
      for (int one = 0; one < 2; ++one)
        w_scale[across][one] =
            Math::kWScaled ? tile.weight.scales[w_scale_at[across][one] + scale_column(args, input)] : 1.0f;
    }
    ASSAY_UNROLL
    for (int down = 0; down < kTall; ++down) {
      ASSAY_UNROLL
      for (int half = 0; half < 2; ++half) {
        float x_scale = 1;
        if constexpr (Math::kXScaled) {
          const int row = row_of(down, half) < tile.rows ? row_of(down, half) : 0;
          const int column = args.x_scale_columns == 1 ? 0 : input / 128;
          x_scale = args.x_scales[static_cast<std::int64_t>(tile.row + row) * args.x_scale_columns + column];
        }
        ASSAY_UNROLL
        for (int i = 0; i < 2 * kWide; ++i) {
          Total& part = partial[down][i / 2][2 * half + i % 2];
          float& to = sum[down][i / 2][2 * half + i % 2];
          const float scaled = static_cast<float>(part) * Math::kUnit * x_scale;
          to = fmaf(scaled, w_scale[i / 2][i % 2], to);
          part = 0;
        }
      }
    }
  }

  ASSAY_DEVICE void run() {
    if constexpr (Math::kWScaled) {
      ASSAY_UNROLL
      for (int i = 0; i < 2 * kWide; ++i)
        w_scale_at[i / 2][i % 2] =
            static_cast<std::int32_t>(scale_row(args, last_output(output_of(i / 2, i % 2))));
    }
    const int steps = (args.inputs + kDepth - 1) / kDepth, ahead = args.stages - 1;
    for (int step = 0; step < ahead; ++step) {
      if (step < steps) load(step, step);
      cp_async_commit();
    }
    int pending = 0, stage = 0, next = ahead;
    for (int step = 0; step < steps; ++step) {
      wait_for_stage(ahead - 1);
      sync_block();  // the stage is there for all, and all have left the one before
      if (step + ahead < steps) load(step + ahead, next);
      cp_async_commit();
      for (int slab = 0; slab < kDepth / kSlab; ++slab) {
        const std::int32_t input = step * kDepth + slab * kSlab;
        if (input >= args.inputs) break;
        multiply_slab(stage, slab, input);
        if (++pending < args.slabs_together || Math::kExact) continue;
        promote(input);
        pending = 0;
      }
      stage = stage + 1 == args.stages ? 0 : stage + 1;
      next = next + 1 == args.stages ? 0 : next + 1;
    }
    if (pending > 0) promote(args.inputs - 1);
    store();
  }

  ASSAY_DEVICE void store() const {
    ASSAY_UNROLL
    for (int i = 0; i < 4 * kTall * kWide; ++i) {
      const int down = i / 4 / kWide, across = i / 4 % kWide;
      store_sum(args, tile, row_of(down, i % 4 / 2), output_of(across, i % 2), sum[down][across][i % 4]);
    }
  }
};

template <class Math, int kDown, int kAcross, int kTall, int kWide>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(32 * kDown * kAcross, 1) gemm_mma(GemmArgs args) {
#ifdef __CUDA_ARCH__
  // Planned from sm_89 on, and 128 × 128 there alone: sm_90's mma.sync of FP8 is made of conversions and
  // float16 products, for which 128 sums leave too few registers.
  constexpr bool kLarge = kTall * kWide >= 16;
  if constexpr (std::is_same_v<Math, Fp8Native> && (__CUDA_ARCH__ < 890 || (kLarge && __CUDA_ARCH__ > 890)))
    __trap();
  else
#endif
    GemmMma<Math, kDown, kAcross, kTall, kWide>(args, block_index().x).run();
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
