// Real vocabularies, and what others make of real texts with them (../shared/cases/tokenizers).
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/formats/json.h"
#include "refimpl/tokenizers/load.h"
#include "tests/support/support.h"

namespace assay {
namespace {

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};

std::vector<TokenId> numbers(const std::string& line) {
  std::vector<TokenId> ids;
  std::istringstream in(line);
  for (TokenId id = 0; in >> id;) ids.push_back(id);
  return ids;
}

std::vector<std::string> split_at(const std::string& text, const std::string& mark) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, begin)) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + mark.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// llama.cpp's vocabulary tests: texts in NAME.inp, a line of ids for each in NAME.out.
void check_texts(const Tokenizer& tokenizer, const fs::path& stem) {
  const auto texts = split_at(test::read_file(stem.string() + ".inp"), "\n__ggml_vocab_test__\n");
  const auto lines = split_at(test::read_file(stem.string() + ".out"), "\n");
  ASSERT_GE(lines.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i], kPlain), numbers(lines[i])) << "text " << i << ": " << texts[i];
  }
}

class LlamaCppVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(LlamaCppVocabulary, GivesThePublishedIds) {
  ASSAY_CASE_OR_SKIP(stem, std::string("tokenizers/llama.cpp-vocab/") + GetParam());
  check_texts(*load_tokenizer(stem), stem);
}
INSTANTIATE_TEST_SUITE_P(All, LlamaCppVocabulary,
                         testing::Values("ggml-vocab-deepseek-coder.gguf", "ggml-vocab-gpt-2.gguf",
                                         "ggml-vocab-llama-spm.gguf"));

TEST(TokenizerCases, Qwen3FromVocabAndMerges) {
  ASSAY_CASE_OR_SKIP(folder, "tokenizers/qwen3");
  const auto tokenizer = load_tokenizer(folder);
  check_texts(*tokenizer, folder / "ggml-vocab-qwen2.gguf");
  EXPECT_EQ(tokenizer->encode("<|im_start|>"), std::vector<TokenId>{151644});
  EXPECT_EQ(tokenizer->eos(), 151645u);
}

// "EncodingName: X / Sample: text / Encoded: [1, 2]", blank lines between.
void check_plans(const Tokenizer& tokenizer, const std::string& encoding, std::size_t expected_plans) {
  const std::string plans = test::read_file(test::cases() / "tokenizers/tiktoken/TestPlans.txt");
  std::size_t seen = 0;
  for (const std::string& plan : split_at(plans, "EncodingName: ")) {
    if (!plan.starts_with(encoding + "\n")) continue;
    const std::size_t sample = plan.find("Sample: ") + 8, encoded = plan.rfind("\nEncoded: [");
    const std::string text = plan.substr(sample, encoded - sample);
    std::string list = plan.substr(encoded + 11, plan.rfind(']') - encoded - 11);
    std::replace(list.begin(), list.end(), ',', ' ');
    EXPECT_EQ(tokenizer.encode(text, kPlain), numbers(list)) << encoding << ": " << text;
    EXPECT_EQ(tokenizer.decode(numbers(list)), text);
    ++seen;
  }
  EXPECT_EQ(seen, expected_plans);
}

TEST(TokenizerCases, TiktokenCl100k) {
  ASSAY_CASE_OR_SKIP(file, "tokenizers/tiktoken/cl100k_base.tiktoken");
  check_plans(*load_tokenizer(file), "cl100k_base", 64);
}

// The ranks of r50k_base are GPT-2's vocabulary.
TEST(TokenizerCases, TiktokenR50kFromGpt2) {
  ASSAY_CASE_OR_SKIP(file, "tokenizers/llama.cpp-vocab/ggml-vocab-gpt-2.gguf");
  check_plans(*load_tokenizer(file), "r50k_base", 64);
}

// Of the models listed in FILE, those whose vocabulary is at hand.
void check_expected(const Tokenizer& tokenizer, const char* file, const std::string& model) {
  const ParsedJson all = read_json(test::cases() / "tokenizers/expected" / file);
  ASSERT_TRUE(all.contains(model));
  for (const auto& [name, expected] : all.at(model).items()) {
    const auto text = expected.at("text").get<std::string>();
    // In this copy of Llama's file no-break spaces have become spaces, so their merges are lost.
    if (model == "Xenova/llama-tokenizer" && text.find("\u00a0") != std::string::npos) continue;
    const auto ids = tokenizer.encode(text);
    EXPECT_EQ(ids, expected.at("ids").get<std::vector<TokenId>>()) << model << " " << name;
    std::vector<std::string> pieces;  // listed without what is put around the text
    for (const TokenId id : tokenizer.encode(text, {.add_special = false}))
      pieces.push_back(tokenizer.piece(id));
    if (expected.contains("tokens")) {
      EXPECT_EQ(pieces, expected.at("tokens").get<std::vector<std::string>>()) << model << " " << name;
    }
    // GPT-2's were tidied afterwards (" !" became "!").
    if (expected.contains("decoded") && model != "Xenova/gpt2") {
      EXPECT_EQ(tokenizer.decode(ids), expected.at("decoded").get<std::string>()) << model << " " << name;
    }
  }
}

TEST(TokenizerCases, ExpectedOfGpt2) {
  ASSAY_CASE_OR_SKIP(file, "tokenizers/llama.cpp-vocab/ggml-vocab-gpt-2.gguf");
  check_expected(*load_tokenizer(file), "test_tokenization_gpt2.json", "Xenova/gpt2");
}

TEST(TokenizerCases, ExpectedOfLlama2) {
  ASSAY_CASE_OR_SKIP(file, "tokenizers/hf/llama2__tokenizer.json");
  check_expected(*load_tokenizer(file), "test_tokenization_llama.json", "Xenova/llama-tokenizer");
}

TEST(TokenizerCases, ExpectedOfDeepSeekCoder) {
  ASSAY_CASE_OR_SKIP(file, "tokenizers/llama.cpp-vocab/ggml-vocab-deepseek-coder.gguf");
  check_expected(*load_tokenizer(file), "test_tokenization_llama.json",
                 "Xenova/deepseek-coder-1.3b-instruct");
}

}  // namespace
}  // namespace assay
