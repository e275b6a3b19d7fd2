#include "refimpl/tokenizers/token_text.h"

#include <gtest/gtest.h>

#include <random>

#include "core/system/error.h"
#include "refimpl/tokenizers/load.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

// Any row of tokens is decoded as the sum of their texts, or the tokenizer is refused; several of both are there.
TEST(TokenText, TextsAreSums) {
  std::mt19937 random(3);
  std::size_t sums = 0, refused = 0, spaces = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_dir() / "data/fixtures/tokenizers")) {
    if (entry.path().filename() == "EXPECTED.json") continue;
    const auto tokenizer = load_tokenizer(entry.path().string());
    TextOfTokens texts;
    try {
      texts = text_of_tokens(*tokenizer);
    } catch (const Error& error) {
      ++refused;
      continue;
    }
    ++sums;
    std::vector<TokenId> with_text;
    for (TokenId id = 0; id < texts.later.size(); ++id) {
      if (!texts.later[id].empty()) with_text.push_back(id);
      spaces += texts.later[id] == " " + texts.first[id] ? 1 : 0;
      EXPECT_TRUE(!tokenizer->ends_generation(id) || texts.later[id].empty());
    }
    for (int i = 0; i < 50 && !with_text.empty(); ++i) {
      std::vector<TokenId> ids;
      std::string sum;
      for (int n = 0; n < 6; ++n) {
        ids.push_back(with_text[random() % with_text.size()]);
        sum += n == 0 ? texts.first[ids[0]] : texts.later[ids.back()];
      }
      EXPECT_EQ(tokenizer->decode(ids, true), sum) << entry.path();
    }
  }
  EXPECT_GT(sums, 3U);
  EXPECT_GT(spaces, 0U);
  RecordProperty("refused", static_cast<int>(refused));
}

}  // namespace
}  // namespace assay
