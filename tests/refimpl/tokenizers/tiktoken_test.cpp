// Rank files: the families' special tokens and words against tiktoken's own constructors
// (data/make_tokenizer_part_fixtures.py), Qwen's and Llama 3's against the sources named below.
#include "refimpl/tokenizers/tiktoken.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/tokenizers/pre_tokenizer.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      text += i + j > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * j) & 63];
  }
  return text;
}

// The 256 bytes as ranks 0 to 255, and as many pieces of three bytes as are missing.
std::string ranks(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    std::string piece(1, static_cast<char>(i));
    if (i >= 256)
      piece = {static_cast<char>(i >> 16 | 0x80), static_cast<char>(i >> 8), static_cast<char>(i)};
    text += base64(piece) + ' ' + std::to_string(i) + '\n';
  }
  return text;
}

std::unique_ptr<Tokenizer> named(const std::string& file, const TokenizerNeighbours& neighbours = {}) {
  return read_tiktoken(ranks(256), "", neighbours, file);
}

TEST(TiktokenFamilies, HaveTheSpecialTokensOfTiktoken) {
  const ParsedJson all = read_json(test::source_dir() / "data/fixtures/tokenizer_parts/tiktoken.json");
  ASSERT_EQ(all.size(), 7U);
  for (const ParsedJson& family : all) {
    const auto name = family.at("name").get<std::string>();
    const auto tokenizer = named(name + ".tiktoken");
    EXPECT_EQ(tokenizer->vocab_size(), family.at("size").get<std::size_t>()) << name;
    EXPECT_NE(tokenizer->description().find(name), std::string::npos) << tokenizer->description();
    for (const ParsedJson& special : family.at("special")) {
      const auto text = special[0].get<std::string>();
      const auto id = special[1].get<TokenId>();
      EXPECT_EQ(tokenizer->piece(id), text) << name;
      EXPECT_EQ(tokenizer->encode("a" + text), (std::vector<TokenId>{'a', id})) << name;
      EXPECT_GT(tokenizer->encode(text, {.parse_special = false}).size(), 1U) << name;
      EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{id}, true), "") << name;
    }
    std::size_t known = 0;
    for (TokenId id = 256; id < tokenizer->vocab_size(); ++id)
      known += tokenizer->vocabulary().kind(id) == PieceKind::absent ? 0 : 1;
    EXPECT_EQ(known, name == "o200k_harmony" ? 1090U : family.at("special").size()) << name;
    EXPECT_EQ(tokenizer->bos(), name == "o200k_harmony" ? std::optional<TokenId>(199998) : std::nullopt);
    EXPECT_EQ(tokenizer->piece(*tokenizer->eos()), name == "o200k_harmony" ? "<|return|>" : "<|endoftext|>");
  }
}

// Qwen's tokenization_qwen.py: <|endoftext|>, <|im_start|>, <|im_end|> from 151643 on, then 205 <|extra_N|>.
TEST(TiktokenFamilies, Qwen) {
  const auto tokenizer = named("qwen.tiktoken");
  EXPECT_EQ(tokenizer->vocab_size(), 151851U);
  const char* first[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (TokenId i = 0; i < 3; ++i) EXPECT_EQ(tokenizer->piece(151643 + i), first[i]);
  for (TokenId i = 0; i < 205; ++i) EXPECT_EQ(tokenizer->piece(151646 + i), fmt::format("<|extra_{}|>", i));
  EXPECT_EQ(tokenizer->encode("e\u0301", {}), (std::vector<TokenId>{0xC3, 0xA9}));  // NFC
  EXPECT_EQ(tokenizer->eos(), 151643U);
}

// Llama 3's tokenizer.py with 3.1's names (special_tokens_map of its repository): 256 tokens behind 128,000
// ranks.
TEST(TiktokenFamilies, Llama3) {
  const auto tokenizer = named("llama3.model");
  const std::vector<std::string> first = {"<|begin_of_text|>",
                                          "<|end_of_text|>",
                                          "<|reserved_special_token_0|>",
                                          "<|reserved_special_token_1|>",
                                          "<|finetune_right_pad_id|>",
                                          "<|reserved_special_token_2|>",
                                          "<|start_header_id|>",
                                          "<|end_header_id|>",
                                          "<|eom_id|>",
                                          "<|eot_id|>",
                                          "<|python_tag|>"};
  EXPECT_EQ(tokenizer->vocab_size(), 128256U);
  for (TokenId i = 0; i < 11; ++i) EXPECT_EQ(tokenizer->piece(128000 + i), first[i]);
  for (TokenId i = 11; i < 256; ++i)
    EXPECT_EQ(tokenizer->piece(128000 + i), fmt::format("<|reserved_special_token_{}|>", i - 8));
  EXPECT_EQ(tokenizer->encode("a"), (std::vector<TokenId>{128000, 'a'}));
  EXPECT_EQ(tokenizer->encode("a", {.add_special = false}), (std::vector<TokenId>{'a'}));
  EXPECT_EQ(tokenizer->eos(), 128001U);
  EXPECT_TRUE(tokenizer->ends_generation(128009));
  EXPECT_FALSE(tokenizer->ends_generation(128006));
}

// tokenization_kimi.py: 256 ids are reserved behind the ranks; those the configuration does not name have a
// name made of their id.
TEST(TiktokenFamilies, KimiReservesIds) {
  TokenizerNeighbours neighbours;
  neighbours.added = {{163584, "[BOS]", true}, {163585, "[EOS]", true}, {163839, "<|last|>", true}};
  neighbours.model_type = "kimi_k2";
  const auto tokenizer = read_tiktoken(ranks(163584), "", neighbours, "tiktoken.model");
  EXPECT_EQ(tokenizer->vocab_size(), 163840U);
  EXPECT_EQ(tokenizer->bos(), 163584U);
  EXPECT_EQ(tokenizer->eos(), 163585U);
  EXPECT_EQ(tokenizer->piece(163586), "<|reserved_token_163586|>");
  EXPECT_EQ(tokenizer->piece(163838), "<|reserved_token_163838|>");
  EXPECT_EQ(tokenizer->piece(163839), "<|last|>");
  EXPECT_EQ(tokenizer->encode("<|reserved_token_163700|>"), (std::vector<TokenId>{163700}));
  EXPECT_GT(tokenizer->encode("<|reserved_token_163700|>", {.parse_special = false}).size(), 1U);
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{163700, 'a'}, true), "a");
}

// A file without a telling name is known by how many ranks it has; the model's type comes before that.
TEST(TiktokenFamilies, AreToldByName_TypeAndCount) {
  const std::vector<std::pair<std::size_t, std::string>> counts = {
      {100256, "cl100k_base"}, {199998, "o200k_base"}, {50280, "p50k_base"}, {50256, "r50k_base"},
      {151643, "qwen"},        {128000, "llama3"},     {163584, "kimi"}};
  for (const auto& [count, name] : counts) {
    const auto tokenizer = read_tiktoken(ranks(count), "", {}, "x.model");
    EXPECT_EQ(tokenizer->description(), "tiktoken ranks: " + name);
  }
  EXPECT_THROW(read_tiktoken(ranks(257), "", {}, "x.model"), Error);
  EXPECT_THROW(read_tiktoken(ranks(256), "", {}, "x.model"), Error);
  EXPECT_THROW(read_tiktoken(ranks(1), "", {}, "x.model"), Error);
  TokenizerNeighbours qwen;
  qwen.model_type = "qwen";
  EXPECT_EQ(read_tiktoken(ranks(256), "", qwen, "x.model")->description(), "tiktoken ranks: qwen");
  EXPECT_EQ(read_tiktoken(ranks(50256), "", qwen, "x.model")->description(), "tiktoken ranks: qwen");
  EXPECT_EQ(named("gpt2.tiktoken", qwen)->description(), "tiktoken ranks: gpt2");
}

// 0xFF is in no UTF-8, yet a text may be no UTF-8.
TEST(TiktokenFamilies, EveryByteHasItsRank) {
  const auto tokenizer = named("gpt2.tiktoken");
  for (const char* byte : {"\x7f", "\xc3", "\xfe", "\xff"})
    EXPECT_EQ(tokenizer->encode(byte), std::vector<TokenId>{static_cast<unsigned char>(*byte)});
  EXPECT_EQ(tokenizer->encode("\xff\xfe\xff"), (std::vector<TokenId>{255, 254, 255}));  // no piece as it is
}

TEST(TiktokenFamilies, APatternOfOnesOwn) {
  const auto read = [](std::string_view pattern) {
    return read_tiktoken(ranks(258), pattern, {}, "qwen.tiktoken");
  };
  EXPECT_EQ(read("cl100k_base")->description(), "tiktoken ranks: cl100k_base");
  EXPECT_EQ(read("kimi-k2")->description(), "tiktoken ranks: kimi");
  EXPECT_EQ(read("gpt-4o")->description(), "tiktoken ranks: o200k_harmony");
  EXPECT_EQ(read("starcoder")->description(), "tiktoken ranks: starcoder");
  EXPECT_EQ(read("[^ab]|a|b")->description(), "tiktoken ranks: a pattern of your own");
  EXPECT_EQ(read("[^ab]|a|b")->vocab_size(), 258U);
  EXPECT_THROW(read("[^ab"), Error);
}

TokenizerNeighbours with(std::optional<bool> bos, std::optional<bool> eos) {
  TokenizerNeighbours neighbours;
  neighbours.add_bos = bos;
  neighbours.add_eos = eos;
  return neighbours;
}

TEST(TiktokenFamilies, TheConfigurationDecidesWhatIsPutAround) {
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(named("llama3.model", with(false, true))->encode("a"), (Ids{'a', 128001}));
  EXPECT_EQ(named("llama3.model", with(true, false))->encode("a"), (Ids{128000, 'a'}));
  EXPECT_EQ(named("cl100k_base.tiktoken", with(true, true))->encode("a"), (Ids{'a', 100257}));
  TokenizerNeighbours named_ends;
  named_ends.added = {{300, "<x>", true}, {301, "<y>", true}, {302, "<|eot_id|>", true}};
  named_ends.bos = "<x>";
  named_ends.eos = "<y>";
  const auto tokenizer = named("llama3.model", named_ends);
  EXPECT_EQ(tokenizer->bos(), 300U);
  EXPECT_EQ(tokenizer->eos(), 301U);
  EXPECT_EQ(tokenizer->vocab_size(), 303U);  // the configuration's tokens instead of the family's
  EXPECT_TRUE(tokenizer->ends_generation(301));
  EXPECT_TRUE(tokenizer->ends_generation(302));
}

// Merges go by rank: the lowest first, of equals the leftmost; a word that is a rank is that.
TEST(TiktokenRanks, AreMergedLowestFirst) {
  const std::string text = ranks(256) + base64("ab") + " 256\n" + base64("bc") + " 257\r\n\n" + base64("cd") +
                           " 258\n" + base64("abc") + " 260\n" + base64("xyz") + " 261";
  const auto tokenizer = read_tiktoken(text, ".+", {}, "x");
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(tokenizer->encode("abcd"), (Ids{256, 258}));
  EXPECT_EQ(tokenizer->encode("bcd"), (Ids{257, 'd'}));
  EXPECT_EQ(tokenizer->encode("abab"), (Ids{256, 256}));
  EXPECT_EQ(tokenizer->encode("abc"), (Ids{260}));
  EXPECT_EQ(tokenizer->encode("xyz"), (Ids{261}));
  EXPECT_EQ(tokenizer->encode("xyzx"), (Ids{'x', 'y', 'z', 'x'}));  // no two of it merge
  EXPECT_EQ(tokenizer->decode(Ids{256, 0xFF}), "ab\xFF");
  EXPECT_EQ(tokenizer->encode("\x7F"), (Ids{0x7F}));
  EXPECT_EQ(read_tiktoken(text, "[^a]+", {}, "x")->encode(std::string("\xC3\xBFz\xC3\xBF")),
            (Ids{0xC3, 0xBF, 'z', 0xC3, 0xBF}));
  EXPECT_EQ(tokenizer->vocab_size(), 262U);
  EXPECT_THROW(static_cast<void>(tokenizer->piece(259)), Error);
}

TEST(TiktokenRanks, LinesAreChecked) {
  for (const char* bad :
       {"YQ==", "YQ== ", "YQ== x", "Y! 0", " 0", "YQ== 4000000", "YQ== -1", "YQ==  0", "YQ== 0 1"})
    EXPECT_THROW(read_tiktoken(bad, ".", {}, "x"), Error) << bad;
  try {
    read_tiktoken("YQ== 0\nYg== 1\nbad\n", ".", {}, "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("14"), std::string::npos)
        << error.what();  // where the line begins
  }
  EXPECT_NO_THROW(read_tiktoken("YQ== 3999999", ".", {}, "x"));
  const auto lacks = read_tiktoken("YQ== 0\nYg== 1", ".+", {}, "x");
  EXPECT_EQ(lacks->encode("aba").size(), 3U);
  EXPECT_THROW(lacks->encode("abc"), Error);
}

TEST(TiktokenRanks, AreKnownByTheirFirstLine) {
  for (const char* good : {"YQ== 0", "YQ== 0\nx", "YQ== 17\r\n", "IQ== 0\n"})
    EXPECT_TRUE(looks_like_ranks(good)) << good;
  for (const char* bad : {"", "\n", " 0", "YQ==", "YQ== x", "Y! 0", "{\"a\": 0}", "YQ==\n0 1"})
    EXPECT_FALSE(looks_like_ranks(bad)) << bad;
}

}  // namespace
}  // namespace assay
