// Small tokenizers, each with one option of its model, its added tokens or its post-processor set, against
// the tokenizers crate (data/make_tokenizer_part_fixtures.py).
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "refimpl/tokenizers/hf_tokenizer.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

const ParsedJson& tokenizers() {
  static const ParsedJson all =
      read_json(test::source_dir() / "data/fixtures/tokenizer_parts/tokenizers.json");
  return all;
}

class TokenizerOption : public testing::TestWithParam<std::size_t> {};

TEST_P(TokenizerOption, IsTakenAsTheCrateTakesIt) {
  const ParsedJson& each = tokenizers()[GetParam()];
  const auto tokenizer = read_hf_tokenizer(each.at("file").dump(), {}, "made");
  for (const ParsedJson& expected : each.at("results")) {
    const auto text = expected.at("text").get<std::string>();
    SCOPED_TRACE(each.at("name").get<std::string>() + ": '" + text + "'");
    const auto ids = expected.at("ids").get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer->encode(text), ids);
    EXPECT_EQ(tokenizer->encode(text, {.add_special = false}),
              expected.at("plain").get<std::vector<TokenId>>());
    EXPECT_EQ(tokenizer->decode(ids), expected.at("decoded").get<std::string>());
    EXPECT_EQ(tokenizer->decode(ids, true), expected.at("skipped").get<std::string>());
  }
}

std::string name_of(const testing::TestParamInfo<std::size_t>& test) {
  std::string name;
  for (const char c : tokenizers()[test.param].at("name").get<std::string>())
    name += c == '#' ? 'H' : c == '@' ? 'A' : c;
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, TokenizerOption, testing::Range(std::size_t{0}, tokenizers().size()), name_of);

}  // namespace
}  // namespace assay
