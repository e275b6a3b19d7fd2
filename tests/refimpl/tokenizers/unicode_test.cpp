// Classes of characters at the ends of their ranges, and broken UTF-8 as Python's decoder replaces it.
#include "refimpl/tokenizers/unicode.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/system/error.h"
#include "refimpl/tokenizers/token_list.h"

namespace assay {
namespace {

using Ranges = std::vector<std::pair<char32_t, char32_t>>;

unsigned number(char32_t c) {
  return c;
}

// Every end of a range is of the class, and what lies beside it is not.
void expect_ranges(bool (*is)(char32_t), const Ranges& ranges) {
  for (const auto& [first, last] : ranges) {
    EXPECT_TRUE(is(first)) << number(first);
    EXPECT_TRUE(is(last)) << number(last);
    EXPECT_FALSE(is(first - 1)) << number(first - 1);
    EXPECT_FALSE(is(last + 1)) << number(last + 1);
  }
}

// huggingface/tokenizers, normalizers/bert.rs, is_chinese_char.
TEST(Unicode, IdeographsThatBertSetsApart) {
  expect_ranges(unicode::is_cjk, {{0x4E00, 0x9FFF},
                                  {0x3400, 0x4DBF},
                                  {0x20000, 0x2A6DF},
                                  {0x2A700, 0x2B81F},
                                  {0x2B920, 0x2CEAF},
                                  {0xF900, 0xFAFF},
                                  {0x2F800, 0x2FA1F}});
  // Where two of its ranges meet.
  EXPECT_TRUE(unicode::is_cjk(0x2B73F) && unicode::is_cjk(0x2B740));
}

// PropList.txt, White_Space.
TEST(Unicode, WhiteSpace) {
  expect_ranges(unicode::is_whitespace, {{0x09, 0x0D},
                                         {0x20, 0x20},
                                         {0x85, 0x85},
                                         {0xA0, 0xA0},
                                         {0x1680, 0x1680},
                                         {0x2000, 0x200A},
                                         {0x2028, 0x2029},
                                         {0x202F, 0x202F},
                                         {0x205F, 0x205F},
                                         {0x3000, 0x3000}});
}

// Alphabetic though symbols (DerivedCoreProperties.txt), and what joins words.
TEST(Unicode, SymbolsThatMakeWords) {
  expect_ranges(
      unicode::is_word,
      {{0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}, {0x200C, 0x200D}});
  for (const char32_t c : {U'a', U'_', U'7', char32_t{0x0300}, char32_t{0x2160}, char32_t{0x203F}})
    EXPECT_TRUE(unicode::is_word(c)) << number(c);
  for (const char32_t c : {U'-', U' ', char32_t{0x00BD}, char32_t{0x20AC}})
    EXPECT_FALSE(unicode::is_word(c)) << number(c);
}

TEST(Unicode, ControlsAreOfThreeKinds) {
  for (const char32_t c :
       {char32_t{0x07}, char32_t{0x85}, char32_t{0xAD}, char32_t{0x200B}, char32_t{0xE000}})
    EXPECT_TRUE(unicode::is_control(c)) << number(c);
  for (const char32_t c : {U' ', U'a', char32_t{0x0378}}) EXPECT_FALSE(unicode::is_control(c));
}

// bytes.decode('utf-8', 'replace') of Python 3.11.
TEST(Unicode, BrokenTextIsReplacedAsPythonDoes) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"\xe2"
       "\x96",
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xe2"
       "\x28"
       "\xa1",
       "\xef"
       "\xbf"
       "\xbd"
       "\x28"
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xf0"
       "\x9f"
       "\x98",
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xf0"
       "\x9f"
       "\x98"
       "\x80",
       "\xf0"
       "\x9f"
       "\x98"
       "\x80"},
      {"\x61"
       "\xf0"
       "\x9f"
       "\x98"
       "\x62",
       "\x61"
       "\xef"
       "\xbf"
       "\xbd"
       "\x62"},
      {"\xc3"
       "\x28",
       "\xef"
       "\xbf"
       "\xbd"
       "\x28"},
      {"\xed"
       "\xa0"
       "\x80",
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xf4"
       "\x90"
       "\x80"
       "\x80",
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xe0"
       "\x80"
       "\x80",
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xf0"
       "\x80"
       "\x80"
       "\x80",
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xc2",
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xc1"
       "\xbf",
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xf5"
       "\x80"
       "\x80",
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"},
      {"\x80"
       "\x80",
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"},
      {"\x6f"
       "\x6b"
       "\xe2"
       "\x82"
       "\xac"
       "\xff"
       "\xe2"
       "\x82",
       "\x6f"
       "\x6b"
       "\xe2"
       "\x82"
       "\xac"
       "\xef"
       "\xbf"
       "\xbd"
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xf4"
       "\x8f"
       "\xbf"
       "\xbf",
       "\xf4"
       "\x8f"
       "\xbf"
       "\xbf"},
      {"\xed"
       "\x9f"
       "\xbf",
       "\xed"
       "\x9f"
       "\xbf"},
      {"\xe0"
       "\xa0",
       "\xef"
       "\xbf"
       "\xbd"},
      {"\xf1"
       "\x80"
       "\x80"
       "\x41",
       "\xef"
       "\xbf"
       "\xbd"
       "\x41"},
      {"\xf0"
       "\x90"
       "\x80"
       "\xe0"
       "\xa0"
       "\x80",
       "\xef"
       "\xbf"
       "\xbd"
       "\xe0"
       "\xa0"
       "\x80"},
  };
  for (const auto& [broken, replaced] : all)
    EXPECT_EQ(unicode::with_replacements(broken), replaced) << testing::PrintToString(broken);
}

TEST(Unicode, ABeginningKnowsWhatItMayBecome) {
  const std::vector<std::pair<std::string, std::size_t>> all = {
      {"", 0},          {"a", 0},        {"\xC1", 0},         {"\xC2", 1},     {"\xC3\xA9", 0},
      {"\xE2\x96", 2},  {"\xE2\x28", 0}, {"\xE2\x96\x81", 0}, {"\xE0\x9F", 0}, {"\xE0\xA0", 2},
      {"\xED\x9F", 2},  {"\xED\xA0", 0}, {"\xF0\x8F", 0},     {"\xF0\x90", 2}, {"\xF4\x8F\xBF", 3},
      {"\xF4\x90", 0},  {"\xF5\x80", 0}, {"\xF4", 1},         {"\x80", 0},     {"\xF0\x9F\x98\x80", 0},
      {"\xE2\x96z", 0},
  };
  for (const auto& [text, length] : all)
    EXPECT_EQ(unicode::incomplete_prefix(text), length) << testing::PrintToString(text);
}

TEST(Unicode, GraphemesAreWhatAReaderTakesForOneCharacter) {
  const std::string family = "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9", accented = "e\xCC\x81";
  EXPECT_EQ(unicode::grapheme_length(family + "x"), family.size());
  EXPECT_EQ(unicode::grapheme_length(accented + "e"), accented.size());
  EXPECT_EQ(unicode::grapheme_length(accented), accented.size());
  EXPECT_EQ(unicode::grapheme_length("\r\nx"), 2U);
  EXPECT_EQ(unicode::grapheme_length("ab"), 1U);
  EXPECT_EQ(unicode::grapheme_length("\xFFz"), 1U);
  EXPECT_EQ(unicode::grapheme_length("a\xCC"), 1U);
}

TEST(TokenList, TakesIdsBetweenCommas) {
  EXPECT_EQ(parse_tokens("7"), std::vector<TokenId>{7});
  EXPECT_EQ(parse_tokens("1, 2 ,4294967295"), (std::vector<TokenId>{1, 2, 4294967295}));
  for (const char* wrong : {"", "1,", "1,,2", "x", "-1", "4294967296", "1 2"})
    EXPECT_THROW(parse_tokens(wrong), Error) << wrong;
}

}  // namespace
}  // namespace assay
