// Which file of a folder is the tokenizer, and what the files beside it add.
#include "refimpl/tokenizers/load.h"

#include <gtest/gtest.h>

#include "core/formats/checkpoint.h"
#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/tokenizers/neighbours.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using Ids = std::vector<TokenId>;

std::string default_of(const TokenizerNeighbours& read) {
  for (const NamedTemplate& each : read.chat_templates) {
    if (each.name == "default") return each.text;
  }
  return "";
}

fs::path fixtures() {
  return test::source_dir() / "data/fixtures";
}

std::string word_level(const std::string& more = "") {
  return R"({"model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3}})" +
         more + "}";
}

// -------------------------------------------------------------------------------------------- which file it
// is

TEST(LoadTokenizer, TakesTheFirstOfAFolder) {
  const test::TempDir folder;
  const auto description = [&] { return load_tokenizer(folder.path())->description(); };
  EXPECT_THROW(load_tokenizer(folder.path()), Error);
  EXPECT_THROW(load_tokenizer(folder / "absent"), Error);
  fs::copy(fixtures() / "sentencepiece/bpe.model", folder / "other.model");
  EXPECT_EQ(description(), "SentencePiece model: BPE");
  std::string ranks;
  for (const char* line : {"YQ== 0", "Yg== 1"}) ranks += std::string(line) + "\n";
  test::write_file(folder / "cl100k_base.tiktoken", ranks);
  EXPECT_EQ(description(), "tiktoken ranks: cl100k_base");
  test::write_file(folder / "vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  test::write_file(folder / "merges.txt", "#version: 0.2\na b\n");
  EXPECT_EQ(description(), "vocab.json and merges.txt: BPE, words cut as gpt-2 does");
  EXPECT_EQ(load_tokenizer(folder / "merges.txt")->encode("ab"), (Ids{2}));
  fs::copy(fixtures() / "sentencepiece/unigram_bytes.model", folder / "spiece.model");
  EXPECT_EQ(description(), "SentencePiece model: Unigram");
  fs::copy(fixtures() / "sentencepiece/bpe.model", folder / "tokenizer.model");
  EXPECT_EQ(description(), "SentencePiece model: BPE");
  test::write_file(folder / "tokenizer.json", " \r\n\t" + word_level());
  EXPECT_EQ(description(), "tokenizer.json: WordLevel");
}

TEST(LoadTokenizer, HubFoldersNameTheirSnapshot) {
  const test::TempDir folder;
  const fs::path snapshots = folder / "snapshots";
  test::write_file(snapshots / "one/tokenizer.json", word_level());
  EXPECT_EQ(load_tokenizer(folder.path())->description(), "tokenizer.json: WordLevel");
  fs::create_directories(snapshots / "two");
  fs::copy(fixtures() / "sentencepiece/bpe.model", snapshots / "two/tokenizer.model");
  test::write_file(folder / "refs/main", "two\n");
  EXPECT_EQ(load_tokenizer(folder.path())->description(), "SentencePiece model: BPE");
  test::write_file(folder / "refs/main", "one");
  EXPECT_EQ(load_tokenizer(folder.path())->description(), "tokenizer.json: WordLevel");
  fs::remove_all(snapshots / "two");
  for (const char* other : {"absent", "../elsewhere", "/tmp"}) {
    test::write_file(folder / "refs/main", other);
    EXPECT_EQ(load_tokenizer(folder.path())->description(), "tokenizer.json: WordLevel") << other;
  }
}

// A tokenizer may have a tenth more or fewer tokens than the model has rows, or 16.
TEST(LoadTokenizer, AnotherModelsIsToldByItsSize) {
  const test::TempDir folder;
  Checkpoint checkpoint;
  checkpoint.root = folder.path();
  const auto fits = [&](std::size_t tokens, std::size_t rows) {
    const std::string last = R"({"id": )" + std::to_string(tokens - 1) + R"(, "content": "<last>"})";
    test::write_file(folder / "tokenizer.json", word_level(", \"added_tokens\": [" + last + "]"));
    try {
      return load_tokenizer(checkpoint, rows)->vocab_size() == tokens;
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(fits(10, 26));
  EXPECT_FALSE(fits(10, 27));
  EXPECT_TRUE(fits(40, 24));
  EXPECT_FALSE(fits(40, 23));
  EXPECT_TRUE(fits(900, 1000));
  EXPECT_FALSE(fits(899, 1000));
  EXPECT_TRUE(fits(1100, 1000));
  EXPECT_FALSE(fits(1101, 1000));
}

// ---------------------------------------------------------------------------------------- what lies beside
// it

// As Python's json module: the last of equal keys counts.
TEST(Neighbours, KeysMayStandTwice) {
  const test::TempDir folder;
  const std::string twice = R"({"eos_token_id": 1, "eos_token_id": 2, "model_type": "a", "model_type": "b", )"
                            R"("bos_token": "x", "bos_token": "y"})";
  for (const char* name : {"tokenizer_config.json", "generation_config.json", "config.json"})
    test::write_file(folder / name, twice);
  test::write_file(folder / "added_tokens.json", R"({"<x>": 5, "<x>": 6})");
  const TokenizerNeighbours read = read_neighbours(folder.path());
  EXPECT_EQ(read.bos, "y");
  EXPECT_EQ(read.model_type, "b");
  EXPECT_EQ(read.generation_ends, (Ids{2}));
  ASSERT_EQ(read.added.size(), 1U);
  EXPECT_EQ(read.added[0].id, 6U);
  test::write_file(folder / "tokenizer.json",
                   R"({"model": {"type": "WordLevel", "vocab": {"y": 1, "y": 2}}})");
  EXPECT_EQ(load_tokenizer(folder.path())->bos(), 2U);
  test::write_file(folder / "vocab.json", R"({"y": 1, "y": 2})");
  test::write_file(folder / "merges.txt", "");
  EXPECT_EQ(load_tokenizer(folder / "vocab.json")->bos(), 2U);
}

TEST(Neighbours, TokensHaveOneOfThreeForms) {
  const test::TempDir folder;
  EXPECT_FALSE(read_neighbours(folder.path()).has_config);
  test::write_file(folder / "tokenizer_config.json", R"({
    "tokenizer_class": "XTokenizer", "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false},
    "unk_token": null, "add_bos_token": true, "add_eos_token": null, "add_prefix_space": true,
    "chat_template": [{"name": "tool", "template": "T"}, {"name": "default", "template": "D"}],
    "added_tokens_decoder": {
      "7": {"content": "<x>", "special": true}, "8": {"content": "<y>", "special": false, "lstrip": true},
      "9": {"content": "<z>", "rstrip": true, "single_word": true, "normalized": false}}})");
  const TokenizerNeighbours read = read_neighbours(folder.path());
  EXPECT_TRUE(read.has_config);
  EXPECT_EQ(read.tokenizer_class, "XTokenizer");
  EXPECT_EQ(read.bos, "<s>");
  EXPECT_EQ(read.eos, "</s>");
  EXPECT_EQ(read.unk, "");
  EXPECT_EQ(read.pad, "");
  EXPECT_EQ(read.add_bos, true);
  EXPECT_EQ(read.add_eos, std::nullopt);
  EXPECT_TRUE(read.add_prefix_space);
  EXPECT_EQ(default_of(read), "D");
  ASSERT_EQ(read.added.size(), 3U);
  const auto flags = [&](std::size_t i) {
    const AddedToken& token = read.added[i];
    return std::vector<bool>{token.special, token.single_word, token.lstrip, token.rstrip, token.normalized};
  };
  EXPECT_EQ(read.added[0].id, 7U);
  EXPECT_EQ(flags(0), (std::vector<bool>{true, false, false, false, false}));
  EXPECT_EQ(flags(1), (std::vector<bool>{false, false, true, false, true}));
  EXPECT_EQ(flags(2), (std::vector<bool>{false, true, false, true, false}));
}

TEST(Neighbours, OlderFilesAddWhatIsMissing) {
  const test::TempDir folder;
  test::write_file(
      folder / "tokenizer_config.json",
      R"({"added_tokens_decoder": {"5": {"content": "<five>", "special": false}}, "chat_template": "C"})");
  test::write_file(folder / "added_tokens.json", R"({"<old five>": 5, "<six>": 6})");
  test::write_file(folder / "generation_config.json", R"({"eos_token_id": [2, -1, "x", 4000000, 3]})");
  test::write_file(folder / "config.json", R"({"model_type": "made"})");
  TokenizerNeighbours read = read_neighbours(folder.path());
  ASSERT_EQ(read.added.size(), 2U);
  EXPECT_EQ(read.added[0].content, "<five>");
  EXPECT_EQ(read.added[1].content, "<six>");
  EXPECT_EQ(read.added[1].id, 6U);
  EXPECT_TRUE(read.added[1].special);
  EXPECT_FALSE(read.added[1].single_word || read.added[1].lstrip || read.added[1].rstrip ||
               read.added[1].normalized);
  EXPECT_EQ(read.generation_ends, (Ids{2, 3}));
  EXPECT_EQ(read.model_type, "made");
  EXPECT_EQ(default_of(read), "C");
  test::write_file(folder / "generation_config.json", R"({"eos_token_id": 3999999})");
  test::write_file(folder / "chat_template.jinja", "J");
  test::write_file(folder / "added_tokens.json", "[]");
  read = read_neighbours(folder.path());
  EXPECT_EQ(read.generation_ends, (Ids{3999999}));
  EXPECT_EQ(default_of(read), "J");
  EXPECT_EQ(read.added.size(), 1U);
}

TEST(Neighbours, IdsBeyondAnyVocabularyAreRefused) {
  const test::TempDir folder;
  for (const char* id : {"4000000", "x", "-1", "1 "}) {
    test::write_file(folder / "tokenizer_config.json",
                     std::string(R"({"added_tokens_decoder": {")") + id + R"(": {"content": "<x>"}}})");
    EXPECT_THROW(read_neighbours(folder.path()), Error) << id;
  }
  test::write_file(folder / "tokenizer_config.json",
                   R"({"added_tokens_decoder": {"3999999": {"content": "<x>"}}})");
  EXPECT_NO_THROW(read_neighbours(folder.path()));
  for (const char* id : {"4000000", "-1", "\"x\""}) {
    test::write_file(folder / "added_tokens.json", std::string(R"({"<y>": )") + id + "}");
    EXPECT_THROW(read_neighbours(folder.path()), Error) << id;
  }
  test::write_file(folder / "added_tokens.json", R"({"<y>": 3999998})");
  EXPECT_NO_THROW(read_neighbours(folder.path()));
}

TEST(Neighbours, ThePlaceOfATemplateIsAnyOfThree) {
  const test::TempDir folder;
  test::write_file(folder / "tokenizer.json", word_level());
  const auto with = [&](const std::string& value) {
    test::write_file(folder / "tokenizer_config.json", "{\"chat_template\": " + value + "}");
    return load_tokenizer(folder.path())->chat_template();
  };
  EXPECT_EQ(with("null"), "");
  EXPECT_EQ(with("\"X\""), "X");
  EXPECT_EQ(with("{}"), "");
  EXPECT_EQ(with(R"([{"name": "rag", "template": "R"}])"), "");
  EXPECT_EQ(with(R"([{"name": "default"}, {"template": "x"}, {"name": 1, "template": "y"}])"), "");
}

TEST(Neighbours, NamedTokensAreLookedUp) {
  const test::TempDir folder;
  test::write_file(folder / "tokenizer.json", word_level());
  test::write_file(folder / "tokenizer_config.json",
                   R"({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "a", "pad_token": "absent"})");
  test::write_file(folder / "generation_config.json", R"({"eos_token_id": [0, 9]})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->bos(), 1U);
  EXPECT_EQ(tokenizer->eos(), 2U);
  EXPECT_EQ(tokenizer->special().unk, 3U);
  EXPECT_EQ(tokenizer->special().pad, std::nullopt);
  EXPECT_EQ(tokenizer->special().end_of_generation, (Ids{0, 2}));
  EXPECT_TRUE(tokenizer->ends_generation(0));
  EXPECT_FALSE(tokenizer->ends_generation(1));
}

TEST(Neighbours, TheirTokensAreFoundInTheText) {
  const test::TempDir folder;
  test::write_file(
      folder / "tokenizer.json",
      word_level(R"(, "added_tokens": [{"id": 9, "content": "a", "special": false}, {"id": 4, "content": ""},
                                 {"id": 5, "content": "<x>", "special": true}])"));
  test::write_file(folder / "tokenizer_config.json", R"({"added_tokens_decoder": {
      "6": {"content": "<x>", "special": false}, "7": {"content": "<y>", "special": true}, "8": {"content": ""},
      "10": {"content": "<z>"}}})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->encode("<x><y>a<z>"), (Ids{5, 7, 3, 10}));  // "a" keeps its id of the vocabulary
  EXPECT_EQ(tokenizer->vocabulary().kind(5), PieceKind::control);
  EXPECT_EQ(tokenizer->vocabulary().kind(6), PieceKind::absent);
  EXPECT_EQ(tokenizer->vocabulary().kind(10), PieceKind::user_defined);
}

// -------------------------------------------------------------------------------- SentencePiece's neighbours

Ids of_class(const std::string& config) {
  const test::TempDir folder;
  fs::copy(fixtures() / "sentencepiece/bpe.model", folder / "tokenizer.model");
  test::write_file(folder / "tokenizer_config.json", config);
  return load_tokenizer(folder.path())->encode("");
}

// transformers: LlamaTokenizer and GemmaTokenizer add BOS, T5Tokenizer adds EOS, others neither.
TEST(LoadTokenizer, ClassesOfSentencePieceAddWhatTheyAdd) {
  EXPECT_EQ(of_class("{}"), (Ids{}));
  EXPECT_EQ(of_class(R"({"tokenizer_class": "LlamaTokenizer"})"), (Ids{1}));
  EXPECT_EQ(of_class(R"({"tokenizer_class": "GemmaTokenizer"})"), (Ids{1}));
  EXPECT_EQ(of_class(R"({"tokenizer_class": "T5Tokenizer"})"), (Ids{2}));
  EXPECT_EQ(
      of_class(R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": false, "add_eos_token": true})"),
      (Ids{2}));
  EXPECT_EQ(of_class(R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "</s>"})"), (Ids{2}));
  EXPECT_EQ(of_class(R"({"tokenizer_class": "T5Tokenizer", "eos_token": "<s>"})"), (Ids{1}));
}

TEST(LoadTokenizer, TokensBesideASentencePieceModelAreAdded) {
  const test::TempDir folder;
  fs::copy(fixtures() / "sentencepiece/unigram_bytes.model", folder / "tokenizer.model");
  const std::size_t size = load_tokenizer(folder.path())->vocab_size();
  test::write_file(folder / "added_tokens.json", "{\"<new>\": " + std::to_string(size + 2) + "}");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->vocab_size(), size + 3);
  EXPECT_EQ(tokenizer->encode("<new>"), (Ids{static_cast<TokenId>(size + 2)}));
}

// -------------------------------------------------------------------------------- vocab.json with merges.txt

std::unique_ptr<Tokenizer> pair_of_files(const std::string& vocab, const std::string& merges,
                                         const std::string& config = "{}") {
  const test::TempDir folder;
  test::write_file(folder / "vocab.json", vocab);
  test::write_file(folder / "merges.txt", merges);
  test::write_file(folder / "tokenizer_config.json", config);
  return load_tokenizer(folder.path());
}

TEST(VocabAndMerges, LinesArePairs) {
  const std::string vocab =
      R"({"a": 0, "b": 1, "ab": 2, "aab": 3, "<|endoftext|>": 4, "Ġ": 5, "Ġa": 6, "Ã": 7, "©": 8})";
  const auto read = [&](const std::string& merges, const std::string& config = "{}") {
    return pair_of_files(vocab, merges, config);
  };
  EXPECT_EQ(read("a b\r\n\r\na ab\r\n")->encode("aabab"), (Ids{3, 2}));
  EXPECT_EQ(read("#version: 0.2\na b")->encode("aab"), (Ids{0, 2}));
  EXPECT_EQ(read("")->encode("ab"), (Ids{0, 1}));
  EXPECT_THROW(read("ab\n"), Error);
  EXPECT_THROW(read("a c\n"), Error);
  EXPECT_EQ(read("")->encode("axb"), (Ids{0, 1}));  // no unknown token: dropped
  EXPECT_EQ(read("", R"({"unk_token": "<|endoftext|>"})")->encode("axb"), (Ids{0, 4, 1}));
  EXPECT_EQ(read("Ġ a", R"({"add_prefix_space": true})")->encode("a"), (Ids{6}));
  EXPECT_EQ(read("Ġ a")->encode("a"), (Ids{0}));
  const std::string ends = R"({"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", )";
  EXPECT_EQ(read("", ends + R"("x": 0})")->encode("a"), (Ids{0}));
  EXPECT_EQ(read("", ends + R"("add_bos_token": true})")->encode("a"), (Ids{4, 0}));
  EXPECT_EQ(read("", ends + R"("add_eos_token": true})")->encode("a"), (Ids{0, 4}));
  EXPECT_EQ(read("")->decode(Ids{6, 7, 8}), " aé");
}

TEST(VocabAndMerges, QwenBringsTextIntoNormalFormC) {
  const std::string vocab = R"({"a": 0, "Ã": 1, "©": 2, "e": 3, "Ì": 4, "ģ": 5})";
  EXPECT_EQ(pair_of_files(vocab, "", R"({"tokenizer_class": "Qwen2Tokenizer"})")->encode("e\u0301"),
            (Ids{1, 2}));
  EXPECT_EQ(pair_of_files(vocab, "", R"({"tokenizer_class": "GPT2Tokenizer"})")->encode("e\u0301"),
            (Ids{3, 4, 5}));
}

TEST(VocabAndMerges, IdsAreChecked) {
  for (const char* vocab : {"[]", R"({"a": -1})", R"({"a": 4000000})", R"({"a": "0"})"})
    EXPECT_THROW(pair_of_files(vocab, ""), Error) << vocab;
  EXPECT_EQ(pair_of_files(R"({"a": 3999999})", "")->encode("a"), (Ids{3999999}));
}

}  // namespace
}  // namespace assay
