#include "kernels/cpu/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace assay::cpu {
namespace {

TEST(Team, TakesEveryPieceOnce) {
  for (const int jobs : {1, 2, 5}) {
    for (const std::size_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> taken(count);
      team_for(jobs, count, [&](std::size_t i) { ++taken[i]; });
      for (const std::atomic<int>& times : taken) EXPECT_EQ(times, 1);
    }
  }
}

TEST(Team, LoopsFollowEachOtherQuickly) {
  std::size_t sum = 0;
  for (std::size_t loop = 0; loop < 5000; ++loop) {
    std::atomic<std::size_t> pieces = 0;
    team_for(3, 7, [&](std::size_t) { ++pieces; });
    sum += pieces;
  }
  EXPECT_EQ(sum, 35000U);
}

TEST(Team, ALoopInALoopIsDoneToo) {
  std::atomic<int> pieces = 0;
  team_for(2, 4, [&](std::size_t) { team_for(2, 10, [&](std::size_t) { ++pieces; }); });
  EXPECT_EQ(pieces, 40);
}

TEST(Team, TwoLoopsAtOnce) {
  std::atomic<int> pieces = 0;
  const auto loops = [&] {
    for (int i = 0; i < 200; ++i) team_for(2, 10, [&](std::size_t) { ++pieces; });
  };
  std::thread other(loops);
  loops();
  other.join();
  EXPECT_EQ(pieces, 4000);
}

TEST(Team, RethrowsWhatAPieceThrew) {
  const auto failing = [](std::size_t i) {
    if (i == 17) throw std::runtime_error("piece 17");
  };
  EXPECT_THROW(team_for(2, 100, failing), std::runtime_error);
  std::atomic<int> pieces = 0;  // and goes on afterwards
  team_for(2, 100, [&](std::size_t) { ++pieces; });
  EXPECT_EQ(pieces, 100);
}

}  // namespace
}  // namespace assay::cpu
