// Small vocabularies that each exercise some components of tokenizer.json, and what the tokenizers crate
// makes of texts with them (data/make_tokenizer_fixtures.py).
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "refimpl/tokenizers/load.h"
#include "refimpl/tokenizers/token_stream.h"
#include "refimpl/tokenizers/unicode.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

fs::path fixtures() {
  return test::source_dir() / "data/fixtures/tokenizers";
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool skip_special) {
  TokenStream stream(tokenizer, skip_special);
  std::string text;
  for (const TokenId id : ids) {
    const std::string part = stream.push(id);
    EXPECT_EQ(unicode::valid_prefix(part), part.size());
    text += part;
  }
  return text + stream.finish();
}

void check(const Tokenizer& tokenizer, const ParsedJson& expected, const std::string& name) {
  const auto text = expected.at("text").get<std::string>();
  SCOPED_TRACE(name + ": " + text);
  const auto ids = expected.at("ids").get<std::vector<TokenId>>();
  EXPECT_EQ(tokenizer.encode(text), ids);
  EXPECT_EQ(tokenizer.encode(text, {.add_special = false}), expected.at("plain").get<std::vector<TokenId>>());
  EXPECT_EQ(unicode::with_replacements(tokenizer.decode(ids)), expected.at("decoded").get<std::string>());
  EXPECT_EQ(unicode::with_replacements(tokenizer.decode(ids, true)),
            expected.at("skipped").get<std::string>());
  EXPECT_EQ(streamed(tokenizer, ids, true), expected.at("skipped").get<std::string>());
}

class TokenizerFixture : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerFixture, AgreesWithTheTokenizersCrate) {
  const ParsedJson expected = read_json(fixtures() / "EXPECTED.json").at(GetParam());
  const auto tokenizer = load_tokenizer(fixtures() / (GetParam() + ".json"));
  ASSERT_GE(expected.size(), 10u);
  for (const ParsedJson& text : expected) check(*tokenizer, text, GetParam());
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  const ParsedJson expected = read_json(fixtures() / "EXPECTED.json");
  for (const auto& [name, texts] : expected.items()) all.push_back(name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, TokenizerFixture, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace assay
