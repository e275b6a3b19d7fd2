#include "core/system/memory_pages.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>

namespace assay {
namespace {

std::string name(std::size_t i) {
  return "a name that is no small string " + std::to_string(i);
}

TEST(Drain, KeepsTheOrderAndLeavesNothingBehind) {
  std::vector<std::string> from;
  for (std::size_t i = 0; i < 100'000; ++i) from.push_back(name(i));
  const auto to = drain<std::unique_ptr<std::string>>(
      from, [](std::string&& text) { return std::make_unique<std::string>(std::move(text)); });
  EXPECT_EQ(from.capacity(), 0u);
  ASSERT_EQ(to.size(), 100'000u);
  for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(*to[i], name(i));
}

TEST(Drain, TakesATailAndWhatStaysIsWhole) {
  std::vector<std::string> from, to = {"first"};
  for (std::size_t i = 0; i < 100'000; ++i) from.push_back(name(i));
  drain_tail(from, 60'000, to, [](std::string&& text) { return std::move(text); });
  ASSERT_EQ(from.size(), 40'000u);
  ASSERT_EQ(to.size(), 60'001u);
  for (std::size_t i = 0; i < from.size(); ++i) ASSERT_EQ(from[i], name(i));
  for (std::size_t i = 1; i < to.size(); ++i) ASSERT_EQ(to[i], name(39'999 + i));
  from.push_back("room that was given back is room all the same");
  EXPECT_EQ(from.back().substr(0, 4), "room");
}

TEST(PassingText, LosesNothingThatIsStillToBeRead) {
  std::string text(10u << 20, 'x');
  PassingText passing(text.data(), text.size());
  for (std::size_t position = 0; position <= text.size(); position += 12'345) {
    passing.passed(position);
    ASSERT_EQ(text.find_first_not_of('x', position), std::string::npos) << position;
  }
  EXPECT_EQ(text[5000], '\0') << "what has been read is gone";
}

}  // namespace
}  // namespace assay
