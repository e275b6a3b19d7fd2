// sm_90's barriers and copy engine under the emulator, against what the PTX ISA says of them, and against kernels that
// do what they must not.
#include "kernels/cuda/mbarrier.cuh"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/system/error.h"
#include "kernels/cuda/wgmma.cuh"

namespace assay::cuda {
namespace {

using emulator::Launch;
using emulator::Order;

constexpr unsigned kMappedRows = 16, kMappedTile = kMappedRows * kTileBytes, kBarriersAt = 2 * kMappedTile;
constexpr Launch kMapBlock = {{1, 1, 1}, {64, 1, 1}, kBarriersAt + 64, Order::forward};
constexpr Launch kMapBackward = {{1, 1, 1}, {64, 1, 1}, kBarriersAt + 64, Order::backward};

// 21 rows of 200 bytes, 208 apart.
struct MappedBytes {
  static constexpr std::uint64_t kRows = 21, kBytes = 200, kPitch = 208;
  alignas(16) std::array<unsigned char, kRows * kPitch> bytes;
  MappedBytes() {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 31 % 251);
  }
  TensorMap map() const { return emulated_tensor_map({bytes.data(), kRows, kBytes, kPitch, kMappedRows}); }
  int at(int row, int byte) const {
    if (row < 0 || byte < 0 || row >= static_cast<int>(kRows) || byte >= static_cast<int>(kBytes)) return 0;
    return bytes[static_cast<std::size_t>(row) * kPitch + static_cast<std::size_t>(byte)];
  }
};

Mbarrier* barrier_at(unsigned i) {
  return shared_memory<Mbarrier>(kBarriersAt) + i;
}
void make_two_barriers(unsigned arrivals) {
  if (thread_id() == 0) {
    mbarrier_init(barrier_at(0), arrivals);
    mbarrier_init(barrier_at(1), arrivals);
    mbarriers_ready();
  }
  sync_block();
}

std::string barrier_accusation(const Launch& launch, const std::function<void()>& kernel) {
  try {
    run(launch, kernel);
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

// At the corner that hangs over: rows and bytes behind the matrix are zeros, chunks are swizzled.
TEST(EmulatedCopyEngine, BringsATileAsWgmmaReadsIt) {
  const MappedBytes source;
  const TensorMap map = source.map();
  for (const Launch& launch : {kMapBlock, kMapBackward}) {
    run(launch, [&] {
      make_two_barriers(1);
      auto* tile = shared_memory<unsigned char>(kMappedTile);
      if (thread_id() == 0) {
        mbarrier_expect(barrier_at(0), kMappedTile);
        copy_tile(tile, &map, 128, 10, barrier_at(0));
        EXPECT_EQ(tile[0], 0xFF);  // under way
      }
      mbarrier_wait(barrier_at(0), 0);
      for (int i = static_cast<int>(thread_id()); i < static_cast<int>(kMappedTile); i += 64) {
        const int row = i / 128, byte = i % 128;
        ASSERT_EQ(tile[row * 128 + Swizzle128::chunk(row, byte / 16) * 16 + byte % 16],
                  source.at(10 + row, 128 + byte))
            << row << " " << byte;
      }
    });
  }
}

// Two tiles of 64 rows × 64 columns of bfloat16: their rows as columns of a product, and as its terms.
TEST(EmulatedWgmma, ReadsATileAcrossAndDown) {
  constexpr unsigned kTileBytes = 64 * 128;
  const auto number = [](unsigned tile, unsigned row, unsigned column) {
    return static_cast<float>(static_cast<int>((row * 7 + column * 3 + tile * 5) % 11) - 5);
  };
  const Launch launch = {
      .grid = {1, 1, 1}, .block = {128, 1, 1}, .shared_bytes = 3 * kTileBytes, .order = Order::forward};
  std::vector<float> scores(64 * 32), sums(64 * 128);
  run(launch, [&] {
    for (unsigned i = thread_id(); i < 3 * 64 * 64; i += 128) {
      const unsigned tile = i / 4096, row = i / 64 % 64, column = i % 64;
      const auto chunk =
          static_cast<unsigned>(Swizzle128::chunk(static_cast<int>(row), static_cast<int>(column / 8)));
      *shared_memory<bf16>(tile * kTileBytes + row * 128 + chunk * 16 + column % 8 * 2) =
          from_float<bf16>(number(tile, row, column));
    }
    sync_block();
    const SharedOperand a = shared_operand(shared_memory<unsigned char>()),
                        across = shared_operand(shared_memory<unsigned char>(kTileBytes));
    const DownOperand down = down_operand(shared_memory<unsigned char>(kTileBytes), kTileBytes);
    WgmmaQueue queue;
    float s[16] = {}, d[64] = {};
    for (int k = 0; k < 4; ++k) {
      wgmma_m64n32<bf16>(queue, s, a.at(k), across.at(k), k != 0);
      wgmma_m64n128_down<bf16>(queue, d, a.at(k), down.at(k), k != 0);
    }
    wgmma_commit(queue);
    wgmma_wait<0>(queue, d);
    const unsigned row = warp_id() * 16 + lane_id() / 4;
    for (unsigned i = 0; i < 64; ++i) {
      const unsigned r = row + i / 2 % 2 * 8, column = i / 4 * 8 + lane_id() % 4 * 2 + i % 2;
      if (i < 16) scores[r * 32 + column] = s[i];
      sums[r * 128 + column] = d[i];
    }
  });
  for (unsigned r = 0; r < 64; ++r) {
    for (unsigned c = 0; c < 128; ++c) {
      float score = 0, sum = 0;
      for (unsigned k = 0; k < 64; ++k) {
        if (c < 32) score += number(0, r, k) * number(1, c, k);
        sum += number(0, r, k) * number(1 + c / 64, k, c % 64);
      }
      if (c < 32) {
        ASSERT_EQ(scores[r * 32 + c], score) << r << " " << c;
      }
      ASSERT_EQ(sums[r * 128 + c], sum) << r << " " << c;
    }
  }
}

// One thread brings, the others read, through a ring of two stages: each stage's third use is its second phase 0.
TEST(EmulatedCopyEngine, FeedsARing) {
  const MappedBytes source;
  const TensorMap map = source.map();
  constexpr int kSteps = 6;
  for (const Launch& launch : {kMapBlock, kMapBackward}) {
    std::vector<int> seen(kSteps, -1);
    run(launch, [&] {
      Mbarrier* const full = barrier_at(0);  // and the next; behind them those of empty stages
      if (thread_id() == 0) {
        for (unsigned i = 0; i < 2; ++i) {
          mbarrier_init(full + i, 1);
          mbarrier_init(full + 2 + i, 32);
        }
        mbarriers_ready();
      }
      sync_block();
      for (int step = 0; step < kSteps; ++step) {
        const unsigned stage = static_cast<unsigned>(step) % 2, phase = static_cast<unsigned>(step) / 2 % 2;
        auto* tile = shared_memory<unsigned char>(stage * kMappedTile);
        if (thread_id() == 0) {
          mbarrier_wait(full + 2 + stage, phase ^ 1);
          mbarrier_expect(full + stage, kMappedTile);
          copy_tile(tile, &map, 0, step, full + stage);
        } else if (warp_id() == 1) {
          mbarrier_wait(full + stage, phase);
          if (lane_id() == 5) seen[static_cast<std::size_t>(step)] = tile[0];
          mbarrier_arrive(full + 2 + stage);
        }
      }
    });
    for (int step = 0; step < kSteps; ++step)
      EXPECT_EQ(seen[static_cast<std::size_t>(step)], source.at(step, 0));
  }
}

constexpr Launch kPairs = {.grid = {4, 1, 1},
                           .block = {64, 1, 1},
                           .shared_bytes = kBarriersAt + 64,
                           .order = Order::forward,
                           .cluster = 2};

// Each of two blocks brings half of what both read; of another pair nothing is seen.
TEST(EmulatedClusters, ReadOnceForTwoBlocks) {
  alignas(16) std::array<float, 4 * 8> rows;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  for (const Order order : {Order::forward, Order::backward}) {
    std::vector<float> sums(4), ranks(4);
    Launch launch = kPairs;
    launch.order = order;
    run(launch, [&] {
      const unsigned pair = block_index().x / 2;
      auto* shared = shared_memory<float>();
      make_two_barriers(1);
      arrive_cluster();
      wait_cluster();
      if (thread_id() == 0) {
        mbarrier_expect(barrier_at(0), 64);
        const unsigned mine = cluster_rank() * 8;
        copy_to_cluster(shared + mine, rows.data() + 16 * pair + mine, 32, barrier_at(0), 3);
      }
      mbarrier_wait(barrier_at(0), 0);
      if (thread_id() == 0) {
        for (unsigned i = 0; i < 16; ++i) sums[block_index().x] += shared[i];
        ranks[block_index().x] = static_cast<float>(cluster_rank());
      }
    });
    EXPECT_EQ(sums, (std::vector<float>{120, 120, 376, 376}));
    EXPECT_EQ(ranks, (std::vector<float>{0, 1, 0, 1}));
  }
}

// What one block writes before it arrives, the other reads when it has waited; without the barrier it does not.
TEST(EmulatedClusters, MeetInTwoHalves) {
  std::vector<int> words(2), seen(2);
  Launch launch = kPairs;
  launch.grid.x = 2;
  for (const Order order : {Order::forward, Order::backward}) {
    for (const bool meets : {true, false}) {
      words = seen = {0, 0};
      launch.order = order;
      run(launch, [&] {
        if (thread_id() == 0) words[cluster_rank()] = 1;
        arrive_cluster();
        if (!meets && thread_id() == 0) seen[cluster_rank()] = words[1 - cluster_rank()];
        wait_cluster();
        if (meets && thread_id() == 0) seen[cluster_rank()] = words[1 - cluster_rank()];
      });
      EXPECT_EQ(seen[0] + seen[1], meets ? 2 : 1);
    }
  }
}

TEST(EmulatorAccuses, AClusterThatDoesNotMeet) {
  EXPECT_NE(barrier_accusation(kPairs, [] { wait_cluster(); }).find("has not arrived"), std::string::npos);
  EXPECT_NE(barrier_accusation(kPairs,
                               [] {
                                 arrive_cluster();
                                 arrive_cluster();
                               })
                .find("arrives twice"),
            std::string::npos);
  EXPECT_NE(barrier_accusation(kPairs,
                               [] {
                                 if (cluster_rank() == 1) return;
                                 arrive_cluster();
                                 wait_cluster();
                               })
                .find("barrier of the cluster"),
            std::string::npos);
  Launch odd = kPairs;
  odd.grid.x = 3;
  EXPECT_NE(barrier_accusation(odd, [] {}).find("whole clusters"), std::string::npos);
}

// A stage that is given back before it was read: who was waiting for it writes first.
TEST(EmulatorAccuses, GivingBackTooEarly) {
  for (const Launch& launch : {kMapBlock, kMapBackward}) {
    for (const bool early : {false, true}) {
      float seen = 0;
      run(launch, [&] {
        make_two_barriers(1);
        auto* word = shared_memory<float>();
        if (thread_id() == 0) {
          *word = 1;
          if (early) mbarrier_arrive(barrier_at(0));
          seen = *word;
          if (!early) mbarrier_arrive(barrier_at(0));
        } else if (thread_id() == 32) {
          mbarrier_wait(barrier_at(0), 0);
          *word = 2;
        }
      });
      EXPECT_EQ(seen, early ? 2.0f : 1.0f);
    }
  }
}

TEST(EmulatorAccuses, ABarrierThatWasNotMade) {
  EXPECT_NE(barrier_accusation(kMapBlock, [] { mbarrier_wait(barrier_at(0), 0); }).find("was not made"),
            std::string::npos);
}
TEST(EmulatorAccuses, WaitingForAnArrivalThatDoesNotCome) {
  const std::string said = barrier_accusation(kMapBlock, [] {
    make_two_barriers(2);
    if (thread_id() == 0) mbarrier_arrive(barrier_at(0));
    mbarrier_wait(barrier_at(0), 0);
  });
  EXPECT_NE(said.find("an mbarrier"), std::string::npos) << said;
}
// Bytes that are expected and not asked for, or asked for and not expected.
TEST(EmulatorAccuses, BytesThatDoNotAddUp) {
  const MappedBytes source;
  const TensorMap map = source.map();
  for (const unsigned expected : {kMappedTile - 16, kMappedTile + 16}) {
    const std::string said = barrier_accusation(kMapBlock, [&] {
      make_two_barriers(1);
      if (thread_id() == 0) {
        mbarrier_expect(barrier_at(0), expected);
        copy_tile(shared_memory<unsigned char>(), &map, 0, 0, barrier_at(0));
      }
      mbarrier_wait(barrier_at(0), 0);
    });
    EXPECT_NE(said.find("an mbarrier"), std::string::npos) << said;
  }
}
TEST(EmulatorAccuses, ATileNobodyWaitedFor) {
  const MappedBytes source;
  const TensorMap map = source.map();
  const std::string said = barrier_accusation(kMapBlock, [&] {
    make_two_barriers(1);
    if (thread_id() == 0) copy_tile(shared_memory<unsigned char>(), &map, 0, 0, barrier_at(0));
  });
  EXPECT_NE(said.find("1 bulk copies under way"), std::string::npos) << said;
}
TEST(EmulatorAccuses, ATileThatIsNotAligned) {
  const MappedBytes source;
  const TensorMap map = source.map();
  const std::string said = barrier_accusation(kMapBlock, [&] {
    make_two_barriers(1);
    if (thread_id() == 0) copy_tile(shared_memory<unsigned char>(512), &map, 0, 0, barrier_at(0));
  });
  EXPECT_NE(said.find("not aligned to 1024"), std::string::npos) << said;
}

TEST(TensorMaps, AreRefusedWhereTheHardwareWould) {
  alignas(16) static const unsigned char bytes[64] = {};
  const TileSource good = {bytes, 2, 17, 32, 64};
  EXPECT_EQ(unmappable(good), nullptr);
  TileSource bad[] = {good, good, good, good, good, good};
  bad[0].base = bytes + 8;
  bad[1].pitch = 24;
  bad[2].rows = 0;
  bad[3].row_bytes = (std::uint64_t{1} << 32) + 1;
  bad[4].tile_rows = 257;
  bad[5].pitch = std::uint64_t{1} << 40;
  for (const TileSource& source : bad) {
    EXPECT_NE(unmappable(source), nullptr);
    EXPECT_THROW(emulated_tensor_map(source), Error);
  }
}

}  // namespace
}  // namespace assay::cuda
