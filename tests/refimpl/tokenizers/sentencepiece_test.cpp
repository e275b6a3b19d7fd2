// SentencePiece models of every kind, and what the library makes of texts with them
// (data/make_sentencepiece_fixtures.py).
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/tokenizers/load.h"
#include "refimpl/tokenizers/sentencepiece_model.h"
#include "refimpl/tokenizers/unicode.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

fs::path folder() {
  return test::source_dir() / "data/fixtures/sentencepiece";
}

void check(const Tokenizer& tokenizer, const ParsedJson& expected) {
  for (const ParsedJson& each : expected) {
    const auto text = each.at("text").get<std::string>();
    SCOPED_TRACE(text);
    const auto ids = each.at("ids").get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(text), ids);
    EXPECT_EQ(unicode::with_replacements(tokenizer.decode(ids)), each.at("decoded").get<std::string>());
  }
}

class SentencePieceKind : public testing::TestWithParam<const char*> {};

TEST_P(SentencePieceKind, AgreesWithTheLibrary) {
  const ParsedJson expected = read_json(folder() / "EXPECTED.json").at(GetParam());
  ASSERT_GE(expected.size(), 10u);
  check(*load_tokenizer(folder() / (std::string(GetParam()) + ".model")), expected);
}
INSTANTIATE_TEST_SUITE_P(All, SentencePieceKind,
                         testing::Values("unigram", "unigram_bytes", "bpe", "bpe_bytes", "word", "char",
                                         "suffix", "no_prefix"));

// Ids by sentencepiece 0.2.1.
TEST(SentencePiece, RealUnigramModel) {
  ASSAY_CASE_OR_SKIP(file, "tokenizers/test_model.model");
  const auto tokenizer = load_tokenizer(file);
  EXPECT_EQ(tokenizer->vocab_size(), 1000u);
  const std::vector<TokenId> ids = {151, 88, 21, 5,  4, 321, 54,  31,  17,
                                    147, 4,  24, 19, 0, 125, 104, 540, 381};
  EXPECT_EQ(tokenizer->encode("Hello, World! naïve ＡＢＣ"), ids);
}

TEST(SentencePiece, EveryTruncationIsRefusedOrHasFewerPieces) {
  const std::string whole = test::read_file(folder() / "bpe.model");
  const std::size_t pieces = parse_sentencepiece_model(whole, "whole").scores.size();
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    try {
      EXPECT_LE(parse_sentencepiece_model(std::string_view(whole).substr(0, length), "cut").scores.size(),
                pieces);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), kExitBadInput);
    }
  }
}

}  // namespace
}  // namespace assay
