// What is no UTF-8, what is very long, what files contradict themselves, and the command.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/tokenizers/load.h"
#include "refimpl/tokenizers/regex.h"
#include "refimpl/tokenizers/token_stream.h"
#include "refimpl/tokenizers/unicode.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

fs::path fixture(const std::string& name) {
  return test::source_dir() / "data/fixtures" / name;
}

std::string random_bytes(std::size_t count) {
  std::mt19937 random(7);
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(random() & 0xFF);
  return bytes;
}

class KnowsBytes : public testing::TestWithParam<const char*> {};

TEST_P(KnowsBytes, ArbitraryBytesComeBack) {
  const auto tokenizer = load_tokenizer(fixture(GetParam()));
  for (const std::string& bytes :
       {random_bytes(5000), std::string("\0\xff", 2), std::string("a\xE2\x96 \xF0\x9F"),
        std::string("\xED\xA0\x80\xC0\x80\xF5")}) {
    const auto ids = tokenizer->encode(bytes, {false, false});
    // GPT-2's way puts a space before the text and leaves it there.
    const bool space = tokenizer->decode(ids).starts_with(' ');
    EXPECT_EQ(tokenizer->decode(ids).substr(space ? 1 : 0), bytes);
    TokenStream stream(*tokenizer, false);
    std::string text;
    for (const TokenId id : ids) text += stream.push(id);
    text += stream.finish();
    EXPECT_EQ(text.substr(space ? 1 : 0), unicode::with_replacements(bytes));
  }
}
INSTANTIATE_TEST_SUITE_P(All, KnowsBytes,
                         testing::Values("tokenizers/byte_level.json", "tokenizers/llama_like.json",
                                         "sentencepiece/bpe_bytes.model"));

// Table 3-8 of the Unicode Standard, 3.9.
TEST(Replacements, OneForEachMaximalPart) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(unicode::with_replacements("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a" + r + r + r + "b" + r + "c" + r + r + "d");
  EXPECT_EQ(unicode::with_replacements("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(unicode::with_replacements("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
}

TEST(TokenStream, ACharacterWaitsForItsRest) {
  ASSAY_CASE_OR_SKIP(file, "tokenizers/llama.cpp-vocab/ggml-vocab-gpt-2.gguf");
  const auto tokenizer = load_tokenizer(file);
  // 🌍 is three tokens of GPT-2 (12520, 234, 235, by tiktoken), the first with a space before it.
  TokenStream stream(*tokenizer);
  EXPECT_EQ(stream.push(12520), " ");
  EXPECT_EQ(stream.push(234), "");
  EXPECT_EQ(stream.push(235), "🌍");
  EXPECT_EQ(stream.push(12520), " ");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
}

// A word of a megabyte: what it decodes to is the check; quadratic time would end in the test's time limit.
TEST(LongWord, IsTokenizedWhole) {
  for (const char* name : {"tokenizers/byte_level.json", "tokenizers/llama_like.json",
                           "sentencepiece/bpe_bytes.model", "sentencepiece/unigram_bytes.model"}) {
    const auto tokenizer = load_tokenizer(fixture(name));
    std::string word;
    while (word.size() < 1'000'000) word += "worldtextnumbers";
    const auto ids = tokenizer->encode(word, {.add_special = false});
    const std::string text = tokenizer->decode(ids);
    EXPECT_EQ(text.substr(text.starts_with(' ') ? 1 : 0), word) << name;
  }
}

TEST(BadVocabulary, IsOneLineAndExitCode2) {
  const test::TempDir folder;
  const std::string empty_bpe = R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, )";
  const std::string split =
      R"("pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": )";
  const std::vector<std::string> bad = {
      "{}",
      R"({"model": {"type": "GPT", "vocab": {}}})",
      R"({"model": {"type": "BPE", "vocab": {"a": 4294967295}, "merges": []}})",
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})",
      R"({"model": {"type": "BPE", "dropout": 0.1, "vocab": {"a": 0}, "merges": []}})",
      empty_bpe + R"("normalizer": {"type": "Magic"}})",
      empty_bpe + split + "\"(?R)\"}}}",
      "not a model",
      std::string(1, '\0')};
  for (const std::string& contents : bad) {
    test::write_file(folder / "tokenizer.json", contents);
    const auto result = test::assay({"tokenize", folder / "tokenizer.json", "text"});
    EXPECT_EQ(result.exit_code, 2) << contents;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(Regex, EndlessBacktrackingIsStopped) {
  const Regex regex("(?:(?:a|aa|aaa)+)+$", RegexDialect::rust);
  EXPECT_THROW(regex.for_each_match(std::string(200, 'a') + "b", [](std::size_t, std::size_t) {}), Error);
}

TEST(TokenizeCommand, PrintsIdsAndPieces) {
  const ParsedJson expected = read_json(fixture("tokenizers/EXPECTED.json")).at("llama_like").at(2);
  const auto text = expected.at("text").get<std::string>();
  const std::string model = fixture("tokenizers/llama_like.json").string();
  const auto encoded = test::assay({"tokenize", model, text, "--json", "-"});
  ASSERT_EQ(encoded.exit_code, 0) << encoded.err;
  const ParsedJson document = ParsedJson::parse(encoded.out);
  EXPECT_EQ(document.at("schema"), "assay.tokenize/1");
  EXPECT_EQ(document.at("ids"), expected.at("ids"));
  EXPECT_EQ(document.at("pieces").size(), expected.at("ids").size());
  EXPECT_EQ(document.at("pieces").at(0), "<s>");

  std::string ids;
  for (const auto& id : expected.at("ids")) ids += std::to_string(id.get<int>()) + ",";
  const auto decoded =
      test::assay({"tokenize", model, "--decode", "--file", "-", "--no-special"}, {.input = ids});
  EXPECT_EQ(decoded.out, expected.at("skipped").get<std::string>() + "\n");
  EXPECT_EQ(test::assay({"tokenize", model, "--decode", "99999999"}).exit_code, 2);
  EXPECT_EQ(test::assay({"tokenize", model}).exit_code, 2);
}

}  // namespace
}  // namespace assay
