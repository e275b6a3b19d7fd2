// SentencePiece models of a few pieces with every flag, against the library; and files that are none
// (data/make_sentencepiece_part_fixtures.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/tokenizers/charsmap.h"
#include "refimpl/tokenizers/normalizer.h"
#include "refimpl/tokenizers/sentencepiece.h"
#include "refimpl/tokenizers/sentencepiece_model.h"
#include "refimpl/tokenizers/unicode.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

const ParsedJson& made() {
  static const ParsedJson all =
      read_json(test::source_dir() / "data/fixtures/tokenizer_parts/sentencepiece.json");
  return all;
}

class SentencePieceOption : public testing::TestWithParam<std::size_t> {};

void expect_id(const std::optional<TokenId>& id, const ParsedJson& expected) {
  EXPECT_EQ(id ? static_cast<int>(*id) : -1, expected.get<int>());
}

TEST_P(SentencePieceOption, IsTakenAsTheLibraryTakesIt) {
  const ParsedJson& each = made().at("models")[GetParam()];
  SentencePieceModel model =
      parse_sentencepiece_model(*decode_base64(each.at("model").get<std::string>()), "made");
  expect_id(model.special.unk, each.at("special").at("unk"));
  expect_id(model.special.bos, each.at("special").at("bos"));
  expect_id(model.special.eos, each.at("special").at("eos"));
  expect_id(model.special.pad, each.at("special").at("pad"));
  const auto tokenizer = make_sentencepiece(std::move(model), {});
  for (std::size_t i = 0; i < made().at("texts").size(); ++i) {
    const auto text = made().at("texts")[i].get<std::string>();
    SCOPED_TRACE(each.at("name").get<std::string>() + ": '" + text + "'");
    const ParsedJson& expected = each.at("made")[i];
    const auto ids = expected[0].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer->encode(text), ids);
    EXPECT_EQ(unicode::with_replacements(tokenizer->decode(ids)), expected[1].get<std::string>());
  }
}
INSTANTIATE_TEST_SUITE_P(All, SentencePieceOption, testing::Range(std::size_t{0}, made().at("models").size()),
                         [](const auto& test) {
                           return made().at("models")[test.param].at("name").template get<std::string>();
                         });

TEST(Charsmap, MapsGraphemesAsTheCrateDoes) {
  const Charsmap map(*decode_base64(made().at("charsmap").get<std::string>()));
  for (std::size_t i = 0; i < made().at("texts").size(); ++i) {
    const auto text = made().at("texts")[i].get<std::string>();
    EXPECT_EQ(map.normalize_graphemes(text), made().at("mapped")[i].get<std::string>()) << text;
  }
  EXPECT_TRUE(Charsmap().empty());
  EXPECT_TRUE(Charsmap("").empty());
  EXPECT_FALSE(map.empty());
}

std::string u32(std::uint32_t value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return bytes;
}

TEST(Charsmap, SizesAreChecked) {
  for (const std::string& blob : {std::string("ab"), u32(0), u32(4), u32(0) + "abcd", u32(3) + "abcd",
                                  u32(8) + "abcd", u32(5) + "abcdefgh"})
    EXPECT_THROW(Charsmap{blob}, Error) << testing::PrintToString(blob);
  EXPECT_NO_THROW(Charsmap{u32(4) + "abcd"});
}

// A trie of one leaf for "a" (darts-clone: unit 0 leads to units by XOR with the byte, the leaf's value lies
// at the offset that follows).
std::string trie_for_a(const std::string& replacements, std::uint32_t value = 0,
                       std::uint32_t root = 256 << 10) {
  std::vector<std::uint32_t> units(512, 0);
  units[0] = root;                                 // children from 256 on
  units[256 ^ 'a'] = 'a' | 1u << 8 | (64u << 10);  // label a, has a leaf, at (256 ^ 'a') ^ 64
  units[(256 ^ 'a') ^ 64] = 1u << 31 | value;
  std::string bytes(units.size() * 4, '\0');
  std::memcpy(bytes.data(), units.data(), bytes.size());
  return u32(static_cast<std::uint32_t>(bytes.size())) + bytes + replacements;
}

TEST(Charsmap, ReplacementsEndAtANulOrTheEnd) {
  EXPECT_EQ(Charsmap(trie_for_a(std::string("xy\0z", 4))).normalize_graphemes("ab"), "xyb");
  EXPECT_EQ(Charsmap(trie_for_a("xy")).normalize_graphemes("ba"), "bxy");
  EXPECT_EQ(Charsmap(trie_for_a("xy", 1)).normalize_graphemes("a"), "y");
  EXPECT_EQ(Charsmap(trie_for_a("xy", 2)).normalize_graphemes("a"), "");
  EXPECT_EQ(Charsmap(trie_for_a("xy", 200)).normalize_graphemes("a"), "");
  EXPECT_EQ(Charsmap(trie_for_a(std::string(256, 'x'))).normalize_graphemes("a").size(), 256U);
  EXPECT_THROW(Charsmap(trie_for_a(std::string(257, 'x'))).normalize_graphemes("a"), Error);
  // An offset of many units is written in steps of 256.
  EXPECT_EQ(Charsmap(trie_for_a("xy", 0, 1 << 10 | 1 << 9)).normalize_graphemes("ab"), "xyb");
  const Charsmap map(trie_for_a("xy"));
  const auto longest = map.longest("aa");
  ASSERT_TRUE(longest);
  EXPECT_EQ(longest->length, 1U);
  EXPECT_EQ(longest->with, "xy");
}

// RFC 4648, section 10, and its alphabet's last two.
TEST(Base64, DecodesTheVectorsOfItsStandard) {
  const std::vector<std::pair<std::string, std::string>> vectors = {{"", ""},
                                                                    {"Zg==", "f"},
                                                                    {"Zm8=", "fo"},
                                                                    {"Zm9v", "foo"},
                                                                    {"Zm9vYg==", "foob"},
                                                                    {"Zm9vYmE=", "fooba"},
                                                                    {"Zm9vYmFy", "foobar"},
                                                                    {"+/+/", "\xFB\xFF\xBF"},
                                                                    {"AZaz09", "\x01\x96\xB3\xD3"}};
  for (const auto& [text, bytes] : vectors) EXPECT_EQ(decode_base64(text), bytes) << text;
  for (const char* wrong : {"Zm9v!", "Z=g", "Zm 9", "@", "[", "`", "{", ":", "-_"})
    EXPECT_EQ(decode_base64(wrong), std::nullopt) << wrong;
}

// ------------------------------------------------------------------------------------- files that are none

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string bytes_field(unsigned number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string number_field(unsigned number, std::uint64_t value) {
  return varint(number << 3) + varint(value);
}
std::string float_field(unsigned number, float value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return varint(number << 3 | 5) + bytes;
}
std::string piece(const std::string& text, std::uint64_t kind, float score = 0) {
  return bytes_field(1, bytes_field(1, text) + float_field(2, score) + number_field(3, kind));
}

TEST(SentencePieceFile, FieldsOfOtherNumbersAreSkipped) {
  const std::string unknown = varint(90 << 3 | 1) + std::string(8, '\x07') + varint(91 << 3 | 5) +
                              "\x07\x07\x07\x07" + number_field(92, 1ull << 63) + bytes_field(93, "abc");
  const std::string file =
      unknown + piece("<unk>", 2) + unknown +
      bytes_field(1, unknown + bytes_field(1, "a") + float_field(2, -1.5F)) +
      bytes_field(2, unknown + number_field(3, 2) + number_field(35, 1) + number_field(24, 1)) +
      bytes_field(3, unknown + number_field(3, 0)) + unknown;
  const SentencePieceModel model = parse_sentencepiece_model(file, "made");
  EXPECT_EQ(model.scores, (std::vector<double>{0, -1.5}));
  EXPECT_EQ(model.vocabulary.at(1), "a");
  EXPECT_EQ(model.vocabulary.kind(1), PieceKind::normal);
  EXPECT_EQ(model.type, SentencePieceModel::Type::bpe);
  EXPECT_TRUE(model.byte_fallback);
  EXPECT_TRUE(model.space_as_suffix);
  EXPECT_FALSE(model.add_dummy_prefix);
  EXPECT_EQ(model.special.unk, 0U);
}

TEST(SentencePieceFile, IdsBeyondThePiecesAreNone) {
  const std::string pieces = piece("<unk>", 2) + piece("a", 1) + piece("b", 1);
  const auto parsed = [&](const std::string& trainer) {
    return parse_sentencepiece_model(pieces + bytes_field(2, trainer), "made").special;
  };
  EXPECT_EQ(parsed("").bos, 1U);
  EXPECT_EQ(parsed("").eos, 2U);
  EXPECT_EQ(parsed("").pad, std::nullopt);
  EXPECT_EQ(parsed(number_field(41, 2)).bos, 2U);
  EXPECT_EQ(parsed(number_field(41, 3)).bos, std::nullopt);
  EXPECT_EQ(parsed(number_field(42, ~0ull)).eos, std::nullopt);
  EXPECT_EQ(parsed(number_field(43, 0)).pad, 0U);
}

TEST(SentencePieceFile, WhatIsNoneIsRefused) {
  const std::string good = piece("<unk>", 2);
  const std::vector<std::string> bad = {
      "",
      bytes_field(3, ""),
      varint(0) + good,
      varint(7) + good,
      varint(5) + "1234" + good,
      varint(1ull << 32 | 2) + good,
      std::string("\x0a\x7f\x0a", 3),
      varint(1 << 3 | 3),
      varint(1 << 3 | 4),
      varint(1 << 3 | 6),
      good + "\x80",
      good + std::string(11, '\xFF'),
      good + varint(90 << 3 | 1) + "1234567",
      good + varint(90 << 3 | 5) + "123",
      good + piece("", 1),
      good + piece("a", 0),
      good + piece("a", 7),
      good + bytes_field(1, bytes_field(1, "a") + float_field(2, std::nanf(""))),
      good + bytes_field(2, number_field(3, 0)),
      good + bytes_field(2, number_field(3, 5)),
      piece(std::string(5000, 'a'), 1) + good};
  for (const std::string& file : bad) {
    const auto load = [&] { make_sentencepiece(parse_sentencepiece_model(file, "made"), {}); };
    EXPECT_THROW(load(), Error) << testing::PrintToString(file.substr(0, 60));
  }
  EXPECT_NO_THROW(parse_sentencepiece_model(good, "made"));
  EXPECT_NO_THROW(
      make_sentencepiece(parse_sentencepiece_model(good + piece(std::string(4096, 'a'), 1), "made"), {}));
  EXPECT_EQ(parse_sentencepiece_model(good + piece("x", 6) + bytes_field(2, number_field(3, 4)), "made").type,
            SentencePieceModel::Type::character);
}

// Without an unknown piece there is nothing to stand for what the vocabulary lacks.
TEST(SentencePieceFile, NothingStandsForWhatIsMissing) {
  const std::string pieces = piece("a", 1) + piece("\xE2\x96\x81", 1);
  for (const unsigned type : {1U, 2U, 3U, 4U}) {
    SentencePieceModel model = parse_sentencepiece_model(
        pieces + bytes_field(2, number_field(3, type) + number_field(40, ~0ull)), "made");
    const auto tokenizer = make_sentencepiece(std::move(model), {});
    EXPECT_THROW(tokenizer->encode("ab"), Error) << type;
  }
}

TEST(SentencePieceTokenizer, SpecialTokensAreFoundAndPut) {
  const std::string pieces = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("a", 1) +
                             piece("\xE2\x96\x81", 1) + bytes_field(2, number_field(3, 2));
  const auto model = [&] { return parse_sentencepiece_model(pieces, "made"); };
  const AddedToken end{2, "</s>", true};
  const auto with = [&](bool bos, bool eos, bool llama_cpp) {
    return make_sentencepiece(model(), {{end}, bos, eos, llama_cpp});
  };
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(with(true, true, false)->encode("a"), (Ids{1, 4, 3, 2}));
  EXPECT_EQ(with(true, false, false)->encode("a"), (Ids{1, 4, 3}));
  EXPECT_EQ(with(false, true, false)->encode("a"), (Ids{4, 3, 2}));
  EXPECT_EQ(with(true, true, false)->encode("a", {.add_special = false}), (Ids{4, 3}));
  // Behind a token the text goes on (SentencePiece), or begins anew (llama.cpp, llm_tokenizer_spm).
  EXPECT_EQ(with(false, false, false)->encode("a</s>a"), (Ids{4, 3, 2, 3}));
  EXPECT_EQ(with(false, false, true)->encode("a</s>a"), (Ids{4, 3, 2, 4, 3}));
  EXPECT_EQ(with(false, false, false)->encode("</s>a"), (Ids{2, 3}));
  const auto plain = with(false, false, false);
  EXPECT_EQ(plain->encode("</s>a", {.parse_special = false}).back(), 3U);
  EXPECT_EQ(plain->decode(Ids{2, 4, 3, 2}, true), "a");
  EXPECT_EQ(plain->decode(Ids{4, 3, 2}), "a</s>");
}

}  // namespace
}  // namespace assay
