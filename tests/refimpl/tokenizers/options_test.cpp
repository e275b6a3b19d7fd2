// Small tokenizers, each with one option of its model, its added tokens or its post-processor set, against
// the tokenizers crate (data/make_tokenizer_part_fixtures.py).
#include <gtest/gtest.h>

#include <cstdlib>

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
    EXPECT_EQ(tokenizer->encode(text, {.add_special = false, .parse_special = false}),
              expected.at("literal").get<std::vector<TokenId>>());
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

// Added tokens of all flags, drawn by chance, in each of data/fixtures/tokenizers. ASSAY_ADDED_CASES: a longer list, written by
// data/make_added_token_fixtures.py.
TEST(AddedTokens, OfAnyFlagsAreTakenAsTheCrateTakesThem) {
  const fs::path fixtures = test::source_dir() / "data/fixtures";
  const char* longer = std::getenv("ASSAY_ADDED_CASES");
  const ParsedJson cases =
      read_json(longer != nullptr ? fs::path(longer) : fixtures / "tokenizer_parts/added.json");
  int compared = 0, differing = 0;
  for (const ParsedJson& each : cases) {
    const auto name = each.at("tokenizer").get<std::string>();
    ParsedJson file = read_json(fixtures / "tokenizers" / (name + ".json"));
    for (const ParsedJson& token : each.at("added")) file["added_tokens"].push_back(token);
    const auto tokenizer = read_hf_tokenizer(file.dump(), {}, "made");
    for (const ParsedJson& expected : each.at("results")) {
      const auto text = expected.at("text").get<std::string>();
      for (const bool literal : {false, true}) {
        const auto ids = expected.at(literal ? "literal" : "ids").get<std::vector<TokenId>>();
        const auto made = tokenizer->encode(text, {.add_special = false, .parse_special = !literal});
        ++compared;
        if (made == ids || ++differing > 20) continue;
        ADD_FAILURE() << name << (literal ? " (literal): " : ": ") << expected.at("text") << "\n made "
                      << ParsedJson(made) << "\n not  " << ParsedJson(ids) << "\n with " << each.at("added");
      }
    }
  }
  EXPECT_GT(compared, 500);
  EXPECT_EQ(differing, 0) << "of " << compared;
}

}  // namespace
}  // namespace assay
