#include "core/system/shell_words.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/support.h"

namespace assay {
namespace {

TEST(ShellWords, LeaveAloneWhatNeedsNothing) {
  EXPECT_EQ(shell_word("org/name-1.5_b.bin"), "org/name-1.5_b.bin");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("~"), "'~'");
  EXPECT_EQ(shell_line(std::vector<std::string>{"a", "b c"}), "a 'b c'");
}

// Of what a terminal could be misled by, nothing reaches it.
TEST(ShellWords, ArePlainAsciiWhereBytesAreOdd) {
  for (const std::string word : {"a\nb", "\x1b[31m", "\xff\x31",
                                 "\xe2\x80\xae"
                                 "exe"}) {
    for (const char c : shell_word(word)) EXPECT_TRUE(c >= ' ' && c <= '~') << word;
  }
}

TEST(ShellWords, AreReadByAShellAsTheyWere) {
  std::mt19937 random(1);
  std::vector<std::string> words = {"",
                                    "-",
                                    "a b",
                                    "'",
                                    "''",
                                    "\\",
                                    "$(id)",
                                    "`id`",
                                    "!x",
                                    "#",
                                    "*",
                                    "\n",
                                    "\xc3\xa9",
                                    "\xff\x31",
                                    "\x01"
                                    "1",
                                    "\\n\n'"};
  for (int i = 0; i < 200; ++i) {
    std::string word;
    for (std::size_t size = random() % 12; size > 0; --size) word += static_cast<char>(1 + random() % 255);
    words.push_back(word);
  }
  std::string expected;
  for (const std::string& word : words) expected += word + '|';
  const auto read = test::run({"bash", "-c", "printf '%s|' " + shell_line(words)});
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_EQ(read.out, expected);
}

}  // namespace
}  // namespace assay
