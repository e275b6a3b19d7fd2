// Texts that are merged in one piece, which MergeCuts takes apart: the same tokens as those who do not
// (data/make_long_text_fixtures.py).
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "refimpl/tokenizers/load.h"
#include "refimpl/tokenizers/merge_cuts.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

std::vector<std::string> parts(const MergeCuts& cuts, std::string_view text, std::string_view uncut = "") {
  std::vector<std::string> all;
  cuts.split(
      text, [&](std::string_view character) { return uncut.find(character) != std::string_view::npos; },
      [&](std::string_view part) { all.emplace_back(part); });
  return all;
}

TEST(MergeCuts, FallBetweenCharactersThatNoPieceHoldsSideBySide) {
  MergeCuts cuts;
  for (const char* piece : {"▁ab", "▁▁", "ba", "é▁", "c"}) cuts.add(piece);
  using Parts = std::vector<std::string>;
  EXPECT_EQ(parts(cuts, "▁ab▁ab"), (Parts{"▁ab", "▁ab"}));
  EXPECT_EQ(parts(cuts, "▁▁▁aba"), (Parts{"▁▁▁aba"}));
  EXPECT_EQ(parts(cuts, "é▁ab"), (Parts{"é▁ab"}));
  EXPECT_EQ(parts(cuts, "aab"), (Parts{"a", "ab"}));
  EXPECT_EQ(parts(cuts, "cc"), (Parts{"c", "c"}));
  EXPECT_EQ(parts(cuts, "\xE2\x96\xE2"), (Parts{"\xE2", "\x96", "\xE2"}));
  EXPECT_EQ(parts(cuts, ""), Parts{});
  EXPECT_EQ(parts(cuts, "acb", "c"), (Parts{"acb"}));
}

TEST(MergeCuts, OfManyPiecesNoneIsForgotten) {
  MergeCuts cuts;
  std::string all = "Ā";
  for (char32_t c = 0x101; c < 0x1000; ++c) {
    std::string character;
    unicode::append(character, c);
    if (unicode::character_at(character, 0).valid) all += character;
  }
  cuts.add(all);
  EXPECT_EQ(parts(cuts, all).size(), 1U);
}

void expect_equal(const ParsedJson& expected, const fs::path& folder, const std::string& extension,
                  const ParsedJson& texts) {
  for (const auto& [name, ids] : expected.items()) {
    const auto tokenizer = load_tokenizer(folder / (name + extension));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(tokenizer->encode(texts[i].get<std::string>(), {.add_special = false}),
                ids[i].get<std::vector<TokenId>>())
          << name << ", text " << i;
    }
  }
}

TEST(LongTexts, AreTokenizedAsByTheCrateAndTheLibrary) {
  const fs::path fixtures = test::source_dir() / "data/fixtures";
  const ParsedJson all = read_json(fixtures / "long_texts.json");
  expect_equal(all.at("crate"), fixtures / "tokenizers", ".json", all.at("texts"));
  expect_equal(all.at("sentencepiece"), fixtures / "sentencepiece", ".model", all.at("texts"));
}

}  // namespace
}  // namespace assay
