#include "refimpl/sampling/stop_text.h"

#include <gtest/gtest.h>

#include <random>

#include "core/system/error.h"

namespace assay {
namespace {

TEST(StopText, WithholdsWhatMayBecomeAStopString) {
  StopText stop({"User:", "\n\n"});
  EXPECT_EQ(stop.push("Hello\n"), "Hello");
  EXPECT_EQ(stop.push("Us"), "\n");
  EXPECT_EQ(stop.push("eful Us"), "Useful ");
  EXPECT_EQ(stop.push("er"), "");
  EXPECT_FALSE(stop.stopped());
  EXPECT_EQ(stop.push(": hi"), "");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.which(), "User:");
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopText, WhatWasWithheldComesAtTheEnd) {
  StopText stop({"STOP"});
  EXPECT_EQ(stop.push("all STO"), "all ");
  EXPECT_EQ(stop.finish(), "STO");
  EXPECT_FALSE(stop.stopped());
}

// Early in a run of tokens that one step made, and not only at its end.
TEST(StopText, FoundEarlyInALongText) {
  StopText stop({"END", "zzz"});
  EXPECT_EQ(stop.push("one END two three zzz"), "one ");
  EXPECT_EQ(stop.which(), "END");
}

TEST(StopText, OverlapsAreFound) {
  StopText a({"aab"});
  EXPECT_EQ(a.push("aaa"), "a");
  EXPECT_EQ(a.push("aab."), "aa");
  EXPECT_TRUE(a.stopped());
  StopText b({"abab!", "ba"});
  EXPECT_EQ(b.push("abab!"), "a");
  StopText longest({"c", "abc", "bc"});
  EXPECT_EQ(longest.push("xabc"), "x");
  EXPECT_EQ(longest.which(), "abc");
}

TEST(StopText, MayBeKept) {
  StopText stop({"."}, true);
  EXPECT_EQ(stop.push("a sentence. another"), "a sentence.");
}

TEST(StopText, AnEmptyOneIsRefused) {
  EXPECT_THROW(StopText({""}), Error);
}

// The first place at which any stop string ends, looked for in the whole text at once.
std::string plainly(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& s : stops)
      if (s.size() <= end && text.compare(end - s.size(), s.size(), s) == 0)
        longest = std::max(longest, s.size());
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST(StopText, HoweverTheTextIsCut) {
  std::mt19937 random(5);
  const auto word = [&](std::size_t most) {
    std::string text;
    for (std::size_t n = 1 + random() % most; n > 0; --n) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> stops;
    for (std::size_t n = 1 + random() % 3; n > 0; --n) stops.push_back(word(6));
    const std::string text = word(40), expected = plainly(text, stops);
    StopText stop(stops);
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t count = 1 + random() % 5;
      shown += stop.push(text.substr(at, count));
      at += count;
      ASSERT_EQ(expected.substr(0, shown.size()), shown) << text;  // nothing is ever taken back
    }
    shown += stop.finish();
    ASSERT_EQ(shown, expected) << text;
  }
}

}  // namespace
}  // namespace assay
