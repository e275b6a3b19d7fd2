// The expressions behind tokenizer.ggml.pre: every one compiles, and cuts as the `tokenizers` crate does
// (data/make_pattern_fixtures.py).
#include "refimpl/tokenizers/patterns.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/formats/json.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

std::vector<std::string> cut(const WordPattern& pattern, const std::string& text) {
  Words words;
  words.text = text;
  words.spans = {{0, static_cast<std::uint32_t>(text.size()), true}};
  make_words(pattern)->apply(words);
  std::vector<std::string> pieces;
  for (const Words::Span& span : words.spans) pieces.emplace_back(words.of(span));
  return pieces;
}

TEST(Patterns, EveryOneCompilesAndLosesNothing) {
  const std::string text = "Hello 123, \xCE\x90\xE1\xBF\x93 \xEF\xA4\x80\n\n  it's\t.";
  for (const std::string_view name : pattern_names()) {
    const WordPattern* pattern = find_pattern(name);
    ASSERT_NE(pattern, nullptr) << name;
    std::string together;
    ASSERT_NO_THROW({
      for (const std::string& piece : cut(*pattern, text)) together += piece;
    }) << name;
    EXPECT_EQ(together, text) << name;
  }
}

TEST(Patterns, OfMarkedTextAreKnownByName) {
  for (const char* name : {"gemma4", "granite-embed-multi-311m", "mmbert", "sarvam-moe"})
    EXPECT_TRUE(is_marked_pattern(name)) << name;
  EXPECT_FALSE(is_marked_pattern("gpt-2"));
}

TEST(Patterns, WordsAreThoseOfTheTokenizersCrate) {
  const ParsedJson expected = read_json(test::source_dir() / "data/fixtures/patterns/EXPECTED.json");
  const ParsedJson& texts = expected.at("texts");
  for (const auto& [name, cases] : expected.at("words").items()) {
    const WordPattern* pattern = find_pattern(name);
    ASSERT_NE(pattern, nullptr) << name;
    for (std::size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(cut(*pattern, texts[i].get<std::string>()), cases[i].get<std::vector<std::string>>())
          << name << ' ' << i;
  }
}

// A source that is normalized on its way loses characters such as U+1FD3 and U+F900: none beyond ASCII stands
// in it.
TEST(Patterns, AreWrittenInAscii) {
  const std::string source = test::read_file(test::source_dir() / "refimpl/tokenizers/patterns.cpp");
  EXPECT_TRUE(
      std::all_of(source.begin(), source.end(), [](char c) { return static_cast<unsigned char>(c) < 128; }));
}

}  // namespace
}  // namespace assay
