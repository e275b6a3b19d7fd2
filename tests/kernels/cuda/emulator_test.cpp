// The emulator against what the PTX ISA says of each primitive, and against kernels that do what they must
// not.
#include "kernels/cuda/emulator.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/system/error.h"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/gemm_codes.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/reduce.cuh"

namespace assay::cuda {
namespace {

using emulator::Launch;
using emulator::Order;
using emulator::run;

// What a kernel is accused of; empty: nothing.
std::string accusation(const Launch& launch, const std::function<void()>& kernel) {
  try {
    run(launch, kernel);
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

Launch block_of(unsigned threads, std::size_t shared_bytes = 0) {
  return {{1, 1, 1}, {threads, 1, 1}, shared_bytes, Order::forward};
}

TEST(Emulator, RunsEveryThreadOfEveryBlockOnce) {
  std::vector<int> seen(3 * 2 * 64);
  run({{3, 2, 1}, {64, 1, 1}, 0}, [&] {
    const Extent3 block = block_index();
    ++seen[(block.y * grid_size().x + block.x) * thread_count() + thread_id()];
  });
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

TEST(Emulator, ExchangesWithinAWarp) {
  std::vector<int> across(64), down(64), from(64);
  std::vector<unsigned> votes(64);
  run(block_of(64), [&] {
    const int id = static_cast<int>(thread_id());
    across[thread_id()] = shuffle_xor(id, 5);
    down[thread_id()] = shuffle_down(id, 3);
    from[thread_id()] = shuffle_idx(id, 7);
    votes[thread_id()] = ballot(id % 3 == 0);
  });
  for (int id = 0; id < 64; ++id) {
    const auto i = static_cast<std::size_t>(id);
    EXPECT_EQ(across[i], id ^ 5);
    EXPECT_EQ(down[i], id % 32 + 3 < 32 ? id + 3 : id);
    EXPECT_EQ(from[i], id / 32 * 32 + 7);
    EXPECT_EQ((votes[i] >> (id % 32)) & 1, id % 3 == 0 ? 1u : 0u);
  }
}

TEST(Emulator, SumsOverABlock) {
  for (const Order order : {Order::forward, Order::backward}) {
    std::vector<float> sums(256), largest(256);
    Launch launch = block_of(256, 128);
    launch.order = order;
    run(launch, [&] {
      const float x = static_cast<float>(thread_id());
      sums[thread_id()] = block_sum<256>(x, shared_memory<float>());
      largest[thread_id()] = block_max<256>(100 - x, shared_memory<float>());
    });
    EXPECT_EQ(sums, std::vector<float>(256, 255 * 128));
    EXPECT_EQ(largest, std::vector<float>(256, 100));
  }
}

TEST(Emulator, SharedMemoryIsNotANumberAtFirst) {
  run(block_of(32, 64), [] { EXPECT_TRUE(std::isnan(shared_memory<float>()[thread_id() % 16])); });
}

// --- what a kernel must not do

TEST(EmulatorAccuses, AMissingBarrier) {
  // Thread i reads what thread i + 1 writes: right by chance in one order, NaN in the other.
  int wrong = 0;
  for (const Order order : {Order::forward, Order::backward}) {
    Launch launch = block_of(64, 65 * sizeof(float));
    launch.order = order;
    run(launch, [&] {
      float* shared = shared_memory<float>();
      shared[thread_id()] = 1;
      if (thread_id() < 63 && !(shared[thread_id() + 1] == 1)) ++wrong;
    });
  }
  EXPECT_GT(wrong, 0);
}

TEST(EmulatorAccuses, AReturnBeforeABarrier) {
  const std::string said = accusation(block_of(64), [] {
    if (thread_id() == 40) return;
    sync_block();
  });
  EXPECT_NE(said.find("diverge"), said.npos) << said;
  EXPECT_NE(said.find("thread 40 has returned"), said.npos) << said;
}

TEST(EmulatorAccuses, TwoDifferentBarriers) {
  const std::string said = accusation(block_of(64), [] {
    if (thread_id() < 32)  // NOLINT(bugprone-branch-clone): two places in the code are what it is about
      sync_block();
    else
      sync_block();
  });
  EXPECT_NE(said.find("this barrier"), said.npos) << said;
}

TEST(EmulatorAccuses, AShuffleThatSomeLanesLeaveOut) {
  const std::string said = accusation(block_of(32), [] {
    if (thread_id() % 2 == 0) shuffle_xor(1, 1);
  });
  EXPECT_NE(said.find("diverge"), said.npos) << said;
}

TEST(EmulatorAccuses, WritesBesideSharedMemory) {
  EXPECT_NE(accusation(block_of(32, 128), [] { shared_memory<float>()[thread_id() + 1] = 0; })
                .find("behind its end"),
            std::string::npos);
  EXPECT_NE(accusation(block_of(32, 128), [] { shared_memory<float>()[-1] = 0; }).find("before its begin"),
            std::string::npos);
}

TEST(EmulatorAccuses, ACopyBesideSharedMemoryOrMisaligned) {
  alignas(16) float source[8] = {};
  const auto copying = [&](unsigned offset) {
    return accusation(block_of(32, 64), [&] { cp_async16(shared_memory<char>(offset), source, true); });
  };
  EXPECT_EQ(copying(48), "");
  EXPECT_NE(copying(56).find("of 64 bytes of shared memory"), std::string::npos);
  EXPECT_NE(copying(8).find("not aligned"), std::string::npos);
  const std::string from =
      accusation(block_of(32, 64), [&] { cp_async16(shared_memory<char>(), source + 1, true); });
  EXPECT_NE(from.find("the source of an asynchronous copy is not aligned"), std::string::npos) << from;
}

TEST(Emulator, EverySecondLaunchRunsBackward) {
  std::vector<unsigned> first;  // of each launch
  for (int i = 0; i < 4; ++i) {
    bool begun = false;
    run({{1, 1, 1}, {64, 1, 1}, 0, Order::alternating}, [&] {
      if (!begun) first.push_back(thread_id());
      begun = true;
    });
  }
  EXPECT_EQ(first[0] + first[1], 63u);
  EXPECT_EQ(first[0], first[2]);
  EXPECT_EQ(first[1], first[3]);
}

TEST(Emulator, ACopyLandsWhenItWasWaitedForAndNotBefore) {
  alignas(16) const float source[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  run(block_of(32, 32 * 32), [&] {
    float* mine = shared_memory<float>() + 8 * thread_id();
    mine[0] = mine[4] = 9;
    cp_async16(mine, source, true);
    cp_async_commit();
    cp_async16(mine + 4, source + 4, false);
    cp_async_commit();
    EXPECT_TRUE(std::isnan(mine[0]));
    cp_async_wait<1>();
    EXPECT_EQ(mine[3], 4);
    EXPECT_TRUE(std::isnan(mine[4]));
    cp_async_wait<0>();
    EXPECT_EQ(mine[4], 0);  // not valid: zeros
  });
}

TEST(Emulator, BarriersOfAPartOfTheBlock) {
  std::vector<float> read(128);
  run(block_of(128, 128 * sizeof(float)), [&] {
    float* shared = shared_memory<float>();
    const unsigned half = thread_id() / 64;
    shared[thread_id()] = static_cast<float>(thread_id());
    if (half == 0)
      sync_group(1, 64);
    else
      sync_group(2, 64);
    read[thread_id()] = shared[half * 64 + 63 - thread_id() % 64];
  });
  for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(read[i], i / 64 * 64 + 63 - i % 64);
}

// Warp 1 waits for warp 3, which waits for warp 0: what warps 0 and 2 do with each other sets neither free.
TEST(Emulator, ABarrierFreesItsOwnPartAlone) {
  std::vector<float> read(32);
  run(block_of(128, 32 * sizeof(float)), [&] {
    float* shared = shared_memory<float>();
    const unsigned lane = thread_id() % 32;
    switch (thread_id() / 32) {
      case 0:
        sync_group(3, 64);
        sync_group(1, 64);
        sync_group(5, 64);
        break;
      case 1:
        sync_group(2, 64);
        read[lane] = shared[31 - lane];
        break;
      case 2:
        sync_group(3, 64);
        sync_group(1, 64);
        break;
      default:
        sync_group(5, 64);
        shared[lane] = static_cast<float>(lane);
        sync_group(2, 64);
    }
  });
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(read[i], 31 - i);
}

// --- tensor cores: fragments filled as PTX ISA's tables say, products against plain loops

struct Tile {
  unsigned rows, columns;
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(rows) * columns);
  float& at(unsigned r, unsigned c) { return values[static_cast<std::size_t>(r) * columns + c]; }
};

Tile integers(unsigned rows, unsigned columns, unsigned seed) {
  Tile tile{rows, columns};
  for (float& x : tile.values) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int>(seed >> 28) - 8);  // -8 … 7: exact in every type
  }
  return tile;
}

template <class T>
unsigned code(float x) {
  if constexpr (std::is_same_v<T, float>)
    return bits_of(x);
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return static_cast<std::uint8_t>(static_cast<int>(x));
  else
    return from_float<T>(x).bits;
}

// The tables of the PTX ISA, by element i of a fragment, as they are printed there.
struct Place {
  unsigned row, column;
};
Place of_a(unsigned bits, unsigned lane, unsigned i) {
  const unsigned group = lane >> 2, t = lane % 4;
  if (bits == 16) return {i < 2 || (4 <= i && i < 6) ? group : group + 8, t * 2 + (i & 1) + (i < 4 ? 0 : 8)};
  if (bits == 8) return {i < 4 || (8 <= i && i < 12) ? group : group + 8, t * 4 + (i & 3) + (i < 8 ? 0 : 16)};
  return {i == 0 || i == 2 ? group : group + 8, i < 2 ? t : t + 4};
}
Place of_b(unsigned bits, unsigned lane, unsigned i) {
  const unsigned group = lane >> 2, t = lane % 4;
  if (bits == 16) return {t * 2 + (i & 1) + (i < 2 ? 0 : 8), group};
  if (bits == 8) return {t * 4 + (i & 3) + (i < 4 ? 0 : 16), group};
  return {i == 0 ? t : t + 4, group};
}
Place of_d(unsigned lane, unsigned i) {
  return {i < 2 ? lane >> 2 : (lane >> 2) + 8, lane % 4 * 2 + (i & 1)};
}

template <class T, unsigned kDepth, class Sum, class Multiply>
void expect_product(Multiply multiply) {
  constexpr unsigned kBits = 8 * sizeof(T), kElements = 32 / kBits;
  Tile a = integers(16, kDepth, 1), b = integers(kDepth, 8, 2), c = integers(16, 8, 3), d{16, 8};
  run(block_of(32), [&] {
    const unsigned lane = thread_id();
    std::uint32_t ra[4] = {}, rb[2] = {};
    Sum rd[4];
    for (unsigned i = 0; i < 4 * kElements; ++i) {
      const Place p = of_a(kBits, lane, i);
      ra[i / kElements] |= code<T>(a.at(p.row, p.column)) << (kBits * (i % kElements) % 32);
    }
    for (unsigned i = 0; i < 2 * kElements; ++i) {
      const Place p = of_b(kBits, lane, i);
      rb[i / kElements] |= code<T>(b.at(p.row, p.column)) << (kBits * (i % kElements) % 32);
    }
    for (unsigned i = 0; i < 4; ++i) rd[i] = static_cast<Sum>(c.at(of_d(lane, i).row, of_d(lane, i).column));
    multiply(rd, ra, rb);
    for (unsigned i = 0; i < 4; ++i)
      d.at(of_d(lane, i).row, of_d(lane, i).column) = static_cast<float>(rd[i]);
  });
  for (unsigned r = 0; r < 16; ++r) {
    for (unsigned n = 0; n < 8; ++n) {
      float sum = c.at(r, n);
      for (unsigned k = 0; k < kDepth; ++k) sum += a.at(r, k) * b.at(k, n);
      EXPECT_EQ(d.at(r, n), sum) << r << ", " << n;
    }
  }
}

TEST(EmulatedTensorCores, MultiplyBfloat16) {
  expect_product<bf16, 16, float>([](auto& d, auto& a, auto& b) { mma_m16n8k16<bf16>(d, a, b); });
}
TEST(EmulatedTensorCores, MultiplyFloat16) {
  expect_product<f16, 16, float>([](auto& d, auto& a, auto& b) { mma_m16n8k16<f16>(d, a, b); });
}
TEST(EmulatedTensorCores, MultiplyE4m3) {
  expect_product<e4m3, 32, float>([](auto& d, auto& a, auto& b) { mma_m16n8k32<e4m3>(d, a, b); });
}
TEST(EmulatedTensorCores, MultiplyInt8) {
  expect_product<std::int8_t, 32, std::int32_t>(
      [](auto& d, auto& a, auto& b) { mma_m16n8k32<std::int8_t>(d, a, b); });
}
TEST(EmulatedTensorCores, MultiplyTf32) {
  expect_product<float, 8, float>([](auto& d, auto& a, auto& b) { mma_m16n8k8_tf32(d, a, b); });
}

TEST(EmulatedTensorCores, Tf32DropsWhatItCannotHold) {
  float product = 0;
  run(block_of(32), [&] {
    const unsigned lane = thread_id();
    std::uint32_t a[4] = {}, b[2] = {};
    if (lane == 0) a[0] = bits_of(1 + 0x1p-11f);
    if (lane == 0) b[0] = bits_of(1.0f);
    float d[4] = {};
    mma_m16n8k8_tf32(d, a, b);
    if (lane == 0) product = d[0];
  });
  EXPECT_EQ(product, 1);
  EXPECT_EQ(float_of(to_tf32(1 + 0x1p-11f)), 1 + 0x1p-10f);  // away from zero
}

TEST(EmulatedTensorCores, LdmatrixDealsOutRowsAndColumns) {
  for (const bool transposed : {false, true}) {
    run(block_of(32, 4 * 8 * 16), [&] {
      const unsigned lane = thread_id();
      auto* shared = shared_memory<std::uint16_t>();
      for (unsigned i = 0; i < 8; ++i) shared[lane * 8 + i] = static_cast<std::uint16_t>(lane * 8 + i);
      sync_block();
      std::uint32_t r[4];
      if (transposed)
        ldmatrix_x4_trans(r, shared + lane * 8);
      else
        ldmatrix_x4(r, shared + lane * 8);
      for (unsigned m = 0; m < 4; ++m) {
        for (unsigned j = 0; j < 2; ++j) {
          const unsigned row = transposed ? 2 * (lane % 4) + j : lane / 4;
          const unsigned column = transposed ? lane / 4 : 2 * (lane % 4) + j;
          EXPECT_EQ(r[m] >> (16 * j) & 0xFFFF, 64 * m + 8 * row + column);
        }
      }
    });
  }
}

TEST(DeviceNumbers, AreThoseOfTheCodecs) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    const float ours = to_float(e4m3{static_cast<std::uint8_t>(bits)}), theirs = decode(kE4M3FN, bits);
    EXPECT_TRUE(ours == theirs || (std::isnan(ours) && std::isnan(theirs))) << bits;
  }
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float ours = to_float(bf16{static_cast<std::uint16_t>(bits)}), theirs = decode(kBF16, bits);
    EXPECT_TRUE(ours == theirs || (std::isnan(ours) && std::isnan(theirs))) << bits;
  }
}

// Each code in each of the four places, among others: NaN too, which float16's fields do not give by themselves.
TEST(DeviceNumbers, E4m3BecomesHalfOf256th) {
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    for (unsigned place = 0; place < 4; ++place) {
      for (const std::uint32_t others : {0x00000000u, 0x38B80171u, 0x7F7F7F7Fu}) {
        const std::uint32_t codes = (others & ~(0xFFu << 8 * place)) | bits << 8 * place;
        std::uint32_t halves[2];
        e4m3_to_half(codes, halves[0], halves[1]);
        for (unsigned i = 0; i < 4; ++i) {
          const float due = decode(kE4M3FN, codes >> 8 * i & 0xFF) / 256;
          const auto half = static_cast<std::uint16_t>(halves[i / 2] >> 16 * (i % 2));
          const float ours = to_float(f16{half});
          EXPECT_TRUE(ours == due || (std::isnan(ours) && std::isnan(due))) << codes << " " << i;
        }
      }
    }
  }
}

// Products' columns as the left side of the next: tiles 2 i and 2 i + 1, rows of a lane in both halves.
TEST(EmulatedTensorCores, WeightsOfTwoTilesAreAFragment) {
  float p[4][4];
  for (int i = 0; i < 16; ++i) p[i / 4][i % 4] = static_cast<float>(i + 1);
  for (int i = 0; i < 2; ++i) {
    const auto left = TileMath<bf16>::left(p, i);
    for (int k = 0; k < 8; ++k) {
      const auto half = static_cast<std::uint16_t>(left.a[k / 2] >> 16 * (k % 2));
      EXPECT_EQ(to_float(bf16{half}), static_cast<float>(8 * i + k + 1)) << i << " " << k;
    }
  }
}

}  // namespace
}  // namespace assay::cuda
