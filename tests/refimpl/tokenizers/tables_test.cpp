// What tokenizers look words up in, against the standard library's maps and against plain search.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

#include "refimpl/tokenizers/byte_trie.h"
#include "refimpl/tokenizers/string_table.h"
#include "refimpl/tokenizers/text_pattern.h"

namespace assay {
namespace {

std::string drawn(std::mt19937& random, std::size_t most, int letters) {
  std::string text(random() % (most + 1), '\0');
  for (char& c : text) c = static_cast<char>(random() % static_cast<unsigned>(letters));
  return text;
}

// Few letters, NUL among them: many strings of equal lengths that differ in one place, short ones and long ones.
TEST(StringTable, HoldsWhatAMapHolds) {
  std::mt19937 random(1);
  StringTable<int> table;
  std::map<std::string, int> map;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = drawn(random, 40, 2 + i % 3);
    table.add(text, i);
    map.emplace(text, i);
  }
  EXPECT_EQ(table.size(), map.size());
  for (const auto& [text, value] : map) {
    ASSERT_NE(table.find(text), nullptr);
    EXPECT_EQ(*table.find(text), value);
  }
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = drawn(random, 40, 2 + i % 3);
    EXPECT_EQ(table.find(text) != nullptr, map.contains(text));
  }
}

TEST(StringTable, OneByteMakesAnotherString) {
  StringTable<int> table;
  EXPECT_EQ(table.find(""), nullptr);
  for (std::size_t length = 0; length < 40; ++length) table.add(std::string(length, 'a'), 0);
  for (std::size_t length = 1; length < 40; ++length) {
    for (std::size_t at = 0; at < length; ++at) {
      std::string other(length, 'a');
      other[at] = 'b';
      EXPECT_EQ(table.find(other), nullptr) << length << ' ' << at;
    }
    EXPECT_NE(table.find(std::string(length, 'a')), nullptr);
  }
}

// A few bytes for children and all 256 of them, deep and flat.
TEST(ByteTrie, FindsWhatASearchFinds) {
  std::mt19937 random(2);
  for (const int letters : {2, 5, 60, 256}) {
    std::map<std::string, std::uint32_t> map;
    for (std::uint32_t i = 0; i < 3'000; ++i) map.emplace(drawn(random, 6, letters), i);
    std::vector<ByteTrie::Entry> entries(map.begin(), map.end());
    const ByteTrie trie(entries);
    map.erase("");
    for (int i = 0; i < 5'000; ++i) {
      const std::string text = drawn(random, 9, letters);
      std::map<std::string, std::uint32_t> found;
      trie.for_each_prefix(text, [&](std::size_t length, std::uint32_t value) {
        found.emplace(text.substr(0, length), value);
      });
      std::map<std::string, std::uint32_t> expected;
      for (std::size_t length = 1; length <= text.size(); ++length) {
        const auto entry = map.find(text.substr(0, length));
        if (entry != map.end()) expected.insert(*entry);
      }
      EXPECT_EQ(found, expected);
      if (text.empty()) continue;
      const auto first = map.lower_bound(text.substr(0, 1));
      EXPECT_EQ(trie.has_first(text[0]), first != map.end() && first->first[0] == text[0]);
    }
  }
  EXPECT_FALSE(ByteTrie().has_first('a'));
}

// A literal is found where its regular expression is, among stray bytes too.
TEST(TextPattern, ALiteralMatchesAsItsExpressionDoes) {
  std::mt19937 random(3);
  using Spans = std::vector<std::pair<std::size_t, std::size_t>>;
  const auto spans = [](const TextPattern& pattern, std::string_view text) {
    Spans all;
    pattern.for_each_match(text, [&](std::size_t begin, std::size_t end) { all.emplace_back(begin, end); });
    return all;
  };
  for (const char* literal : {"", " ", "aa", "▁", "▁▁", "\xC2\x81", "."}) {
    const TextPattern found = TextPattern::literal(literal);
    const TextPattern matched = TextPattern::regex(Regex::escaped(literal), RegexDialect::oniguruma);
    for (int i = 0; i < 500; ++i) {
      std::string text;
      while (text.size() < 30)
        text += std::array{"a", " ", ".", "▁", "\xE2", "\x96\x81", "\xC2", "\x81", "é"}[random() % 9];
      EXPECT_EQ(spans(found, text), spans(matched, text)) << literal << " in " << text;
    }
  }
}

}  // namespace
}  // namespace assay
