// Regular expressions of both dialects, and what matches them in Oniguruma (the tokenizers crate) and in
// Rust's regex crates (tiktoken): data/make_tokenizer_part_fixtures.py.
#include "refimpl/tokenizers/regex.h"

#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

std::vector<std::string> matches(const Regex& regex, const std::string& text) {
  std::vector<std::string> found;
  regex.for_each_match(text, [&](std::size_t begin, std::size_t end) {
    if (end > begin) found.push_back(text.substr(begin, end - begin));
  });
  return found;
}

TEST(RegexDialects, MatchWhatTheirOwnLibrariesMatch) {
  const ParsedJson all = read_json(test::source_dir() / "data/fixtures/tokenizer_parts/regexes.json");
  const ParsedJson& texts = all.at("texts");
  for (const ParsedJson& each : all.at("patterns")) {
    const bool rust = each.at("dialect") == "rust";
    const auto pattern = each.at("pattern").get<std::string>();
    const Regex regex(pattern, rust ? RegexDialect::rust : RegexDialect::oniguruma);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(matches(regex, texts[i].get<std::string>()),
                each.at("made")[i].get<std::vector<std::string>>())
          << (rust ? "Rust " : "Oniguruma ") << pattern << " in " << texts[i];
    }
  }
}

// What would match something else in silence, or be a way to spend memory, is refused by both.
TEST(RegexDialects, RefuseWhatTheyDoNotRead) {
  for (const RegexDialect dialect : {RegexDialect::oniguruma, RegexDialect::rust}) {
    for (const std::string pattern :
         {"a)", "(a", "[a", "[", "\\", "[\\", "(?R)", "(?C1)", "(?#x)", "(?(1)a)", "(*ACCEPT)", "\\p{L",
          "\\p{}", "\\p{a(b}", "\\p{^}", "\\u{41", "\\x{41", "(?J)", "(?i-u:a)"})
      EXPECT_THROW(Regex(pattern, dialect), Error) << pattern;
    EXPECT_THROW(Regex(std::string(22, '[') + "a" + std::string(22, ']'), dialect), Error);
    EXPECT_NO_THROW(Regex(std::string(20, '[') + "a" + std::string(20, ']'), dialect));
    EXPECT_THROW(Regex(std::string(110, '(') + "a" + std::string(110, ')'), dialect), Error);
    EXPECT_THROW(Regex(std::string(101, '(') + "a" + std::string(101, ')'), dialect), Error);
    EXPECT_NO_THROW(Regex(std::string(100, '(') + "a" + std::string(100, ')'), dialect));
    EXPECT_THROW(Regex(std::string((64 << 10) + 1, 'a'), dialect), Error);
  }
  EXPECT_THROW(Regex("\\h", RegexDialect::rust), Error);
  EXPECT_THROW(Regex("\\p", RegexDialect::rust), Error);
  EXPECT_THROW(Regex("[[:nobody:]]", RegexDialect::rust), Error);
  EXPECT_THROW(Regex("(?s:.)", RegexDialect::oniguruma), Error);
  EXPECT_NO_THROW(Regex("(?s:.)", RegexDialect::rust));
}

using Places = std::vector<std::pair<std::size_t, std::size_t>>;
Places places(std::string_view pattern, std::string_view text) {
  Places found;
  Regex(pattern, RegexDialect::oniguruma).for_each_match(text, [&](std::size_t begin, std::size_t end) {
    found.emplace_back(begin, end);
  });
  return found;
}

// As Replace of the tokenizers crate shows: at the end of the text, too, but not right behind another match.
TEST(RegexDialects, EmptyMatchesStandWhereNothingElseEnded) {
  EXPECT_EQ(places("(?=b)", "abab"), (Places{{1, 1}, {3, 3}}));
  EXPECT_EQ(places("b*", "abba"), (Places{{0, 0}, {1, 3}, {4, 4}}));
  EXPECT_EQ(places("$", "a"), (Places{{1, 1}}));
  EXPECT_EQ(places("^", "a"), (Places{{0, 0}}));
  EXPECT_EQ(places("a|$", "aa"), (Places{{0, 1}, {1, 2}}));
  EXPECT_EQ(places("(?=é)|x", "éx"), (Places{{0, 0}, {2, 3}}));
}

// Stray bytes match nothing, and what lies on either side of one is matched for itself.
TEST(RegexDialects, StrayBytesDivideAText) {
  EXPECT_EQ(places(".",
                   "a\xFF\xFE"
                   "b\xC3"),
            (Places{{0, 1}, {3, 4}}));
  EXPECT_EQ(places("a$", "a\xFFz"), (Places{{0, 1}}));
  EXPECT_EQ(places("^b",
                   "a\xFF"
                   "b"),
            (Places{{2, 3}}));
}

TEST(RegexDialects, LiteralsAreEscaped) {
  EXPECT_EQ(Regex::escaped("a.b*é_ 1"), "a\\.b\\*é\\_ 1");
}

}  // namespace
}  // namespace assay
