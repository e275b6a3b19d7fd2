#include "core/system/lasting_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace assay {
namespace {

TEST(LastingMemory, ItsNumberIsThatOfBytesThatAllLieInIt) {
  std::array<std::byte, 100> bytes{};
  const LastingMemory held(std::span<const std::byte>(bytes).subspan(10, 50));
  const std::uint64_t number = lasting_number(&bytes[10], 50);
  EXPECT_NE(number, 0U);
  EXPECT_EQ(lasting_number(&bytes[59], 1), number);
  EXPECT_EQ(lasting_number(&bytes[9], 1), 0U);
  EXPECT_EQ(lasting_number(&bytes[10], 51), 0U);
  EXPECT_EQ(lasting_number(&bytes[60], 0), 0U);
}

TEST(LastingMemory, TheSameAddressHasAnotherNumberTheNextTime) {
  const std::array<std::byte, 8> bytes{};
  std::uint64_t first = 0;
  const std::uint64_t returned = lasting_memory_returned();
  {
    const LastingMemory held(bytes);
    first = lasting_number(bytes.data(), 8);
    EXPECT_TRUE(still_lasts(first));
  }
  EXPECT_FALSE(still_lasts(first));
  EXPECT_EQ(lasting_memory_returned(), returned + 1);
  EXPECT_EQ(lasting_number(bytes.data(), 8), 0U);
  const LastingMemory held(bytes);
  EXPECT_NE(lasting_number(bytes.data(), 8), first);
}

TEST(LastingMemory, WhatWasMovedFromHoldsNothing) {
  const std::array<std::byte, 8> bytes{};
  LastingMemory held(bytes);
  const std::uint64_t number = lasting_number(bytes.data(), 8);
  {
    const LastingMemory other(std::move(held));
    EXPECT_EQ(lasting_number(bytes.data(), 8), number);
  }
  EXPECT_FALSE(still_lasts(number));
}

}  // namespace
}  // namespace assay
