// tokenizer.json: what older files leave out, what contradicts itself, and where limits lie.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/tokenizers/added_tokens.h"
#include "refimpl/tokenizers/byte_level.h"
#include "refimpl/tokenizers/byte_trie.h"
#include "refimpl/tokenizers/hf_tokenizer.h"
#include "refimpl/tokenizers/merge.h"
#include "refimpl/tokenizers/token_stream.h"
#include "refimpl/tokenizers/unicode.h"
#include "refimpl/tokenizers/unigram.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> read(const std::string& text) {
  return read_hf_tokenizer(text, {}, "made");
}
std::unique_ptr<Tokenizer> with(const std::string& parts) {
  return read(
      R"({"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "<s>": 1, "</s>": 2}}, )" +
      parts + "}");
}
std::unique_ptr<Tokenizer> model(const std::string& fields) {
  return read("{\"model\": {" + fields + "}}");
}

TEST(TokenizerJson, OldFilesAreToldByTheirFields) {
  EXPECT_EQ(model(R"("vocab": {"a": 0}, "merges": [])")->description(), "tokenizer.json: BPE");
  EXPECT_EQ(model(R"("vocab": [["a", 0]])")->description(), "tokenizer.json: Unigram");
  EXPECT_EQ(model(R"("vocab": {"a": 0}, "unk_token": "a", "continuing_subword_prefix": "##")")->description(),
            "tokenizer.json: WordPiece");
  EXPECT_EQ(model(R"("vocab": {"a": 0})")->description(), "tokenizer.json: WordLevel");
}

// As tokenizers 0.23.3 does.
TEST(TokenizerJson, AnUnknownTokenHasTheIdOfTheVocabulary) {
  const auto wordpiece = model(R"("type": "WordPiece", "unk_token": "u", "vocab": {"a": 0, "u": 1})");
  EXPECT_EQ(wordpiece->encode("zz"), Ids{1});
}

TEST(TokenizerJson, AnEmptyAddedTokenIsNone) {
  const auto tokenizer = with(R"("added_tokens": [{"id": 3, "content": ""}])");
  EXPECT_EQ(tokenizer->vocab_size(), 3U);
  EXPECT_EQ(tokenizer->encode("<s>"), Ids{1});
}

TEST(TokenizerJson, DefaultsAreTheCrates) {
  // WordPiece: "##" and 100 characters.
  const std::string word(100, 'a');
  const auto wordpiece =
      model(R"("type": "WordPiece", "unk_token": "u", "vocab": {"u": 0, "a": 1, "##a": 2})");
  EXPECT_EQ(wordpiece->encode(word).size(), 100U);
  EXPECT_EQ(wordpiece->encode(word + "a"), Ids{0});
  EXPECT_EQ(with(R"("pre_tokenizer": {"type": "FixedLength"})")->encode("abcdefghijk").size(), 3U);
  EXPECT_EQ(with(R"("pre_tokenizer": {"type": "Digits"})")->encode("a12").size(), 2U);
  EXPECT_EQ(with(R"("pre_tokenizer": {"type": "Punctuation"})")->encode("a,,").size(), 3U);
  EXPECT_EQ(with(R"("pre_tokenizer": {"type": "Split", "pattern": {"String": ","}})")->encode("a,b").size(),
            3U);
  EXPECT_EQ(with(R"("pre_tokenizer": {"type": "Split", "pattern": ","})")->encode("a,b").size(), 3U);
  EXPECT_EQ(with(R"("pre_tokenizer": {"type": "Metaspace"})")->encode("a b").size(), 2U);
  const auto normalized = [&](const std::string& config, const std::string& text) {
    return with("\"pre_tokenizer\": {\"type\": \"FixedLength\", \"length\": 1}, \"normalizer\": " + config)
        ->encode(text)
        .size();
  };
  EXPECT_EQ(normalized(R"({"type": "Strip"})", " a "), 1U);
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer"})", "\x01"), 0U);    // cleaned
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer"})", "\u4E2D"), 3U);  // set apart
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer"})", "\u00C9"), 1U);  // its accent is gone
  EXPECT_EQ(normalized(R"({"type": "BertNormalizer", "lowercase": false})", "e\u0301"), 2U);
  EXPECT_EQ(with(R"("normalizer": {"type": "BertNormalizer"})")->encode("U"), Ids{0});
  const std::string bytes_ =
      R"("type": "Unigram", "unk_id": 0, "vocab": [["u", 0], ["a", -1], ["<0x62>", 0]])";
  EXPECT_EQ(model(bytes_)->encode("b"), Ids{0});
  EXPECT_EQ(model(bytes_ + ", \"byte_fallback\": true")->encode("b"), Ids{2});
  const std::string none =
      R"("type": "BPE", "unk_token": "u", "merges": [["a", "a"]], "vocab": {"u": 0, "a": 1, "aa": 2, "aaa": 3, "<0x62>": 4})";
  EXPECT_EQ(model(none)->encode("bbaaa"), (Ids{0, 0, 2, 1}));
  // Files of before prepend_scheme.
  const auto marked = [](const std::string& prefix) {
    return model(
        R"("type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "a": 1, "▁a": 2}}, "pre_tokenizer": )"
        R"({"type": "Metaspace", "add_prefix_space": )" +
        prefix + R"(}, "decoder": {"type": "Metaspace", "add_prefix_space": )" + prefix + "}, \"x\": {");
  };
  EXPECT_EQ(marked("true")->encode("a"), Ids{2});
  EXPECT_EQ(marked("false")->encode("a"), Ids{1});
  EXPECT_EQ(marked("true")->decode(Ids{2, 2}), "a a");
  EXPECT_EQ(marked("false")->decode(Ids{2, 2}), " a a");
  const std::string bytes =
      R"({"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "Ġu": 1}}, )";
  EXPECT_EQ(read(bytes + R"("pre_tokenizer": {"type": "ByteLevel"}})")->encode("u u"), (Ids{1, 1}));
  EXPECT_EQ(
      read(bytes + R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}})")->encode("u u"),
      (Ids{0, 1}));
  EXPECT_EQ(with(R"("decoder": {"type": "WordPiece"})")->decode(Ids{0, 0}), "u u");
  EXPECT_EQ(with("\"decoder\": null")->decode(Ids{0, 1, 0}), "u <s> u");
  EXPECT_EQ(with(R"("normalizer": null, "pre_tokenizer": null, "post_processor": null)")->encode("u"),
            Ids{0});
}

TEST(TokenizerJson, MergesAreCutBetweenTwoPieces) {
  const std::string vocab =
      R"("type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, " ": 3, "a ": 4, "a  b": 5, " b": 6, "a b": 7})";
  const auto encoded = [&](const std::string& merges) {
    return model(vocab + ", \"merges\": [" + merges + "]")->encode("a  b");
  };
  EXPECT_EQ(encoded(R"(["a", " "])"), (Ids{4, 3, 1}));
  EXPECT_EQ(encoded(R"("a  ")"), (Ids{4, 3, 1}));            // "a" and " "
  EXPECT_EQ(encoded(R"("a  ", "  b", "a   b")"), (Ids{5}));  // " " and "b"; "a " and " b"
  EXPECT_EQ(model(vocab + R"(, "merges": ["a b"])")->encode("ab"), Ids{2});
  for (const char* bad : {R"("ab")", R"("x y")", R"("a x y")", "1", R"(["a"])", R"(["a", 1])",
                          R"(["a", "b", "c"])", R"(["b", "a"])"})
    EXPECT_THROW(encoded(bad), Error) << bad;
}

TEST(TokenizerJson, WhatContradictsItselfIsRefused) {
  for (const char* bad :
       {R"("type": "BPE", "vocab": [], "merges": [])", R"("type": "BPE", "vocab": {"a": 0})",
        R"("type": "Unigram", "vocab": {})", R"("type": "Unigram", "vocab": [["a"]])",
        R"("type": "Unigram", "vocab": [[1, 0]])", R"("type": "Unigram", "vocab": [["a", "b"]])",
        R"("type": "Unigram", "vocab": [["a", 0, 0]])", R"("type": "Unigram", "vocab": [7])",
        R"("type": "WordPiece", "vocab": {"a": 0})",
        R"("type": "WordPiece", "vocab": {"a": 0}, "unk_token": "b")",
        R"("type": "Other", "vocab": {"a": 0})", R"("type": "WordLevel", "vocab": {"a": 4000000})",
        R"("type": "WordLevel", "vocab": {"a": -1})",
        R"("type": "BPE", "dropout": 0.1, "vocab": {"a": 0}, "merges": [])",
        R"("type": "BPE", "fuse_unk": 1, "vocab": {"a": 0}, "merges": [])"})
    EXPECT_THROW(model(bad), Error) << bad;
  EXPECT_NO_THROW(model(R"("type": "BPE", "dropout": 0, "vocab": {"a": 0}, "merges": [])"));
  EXPECT_NO_THROW(model(R"("type": "WordLevel", "vocab": {"a": 3999999})"));
  EXPECT_THROW(read("{}"), Error);
  EXPECT_THROW(read(R"({"model": []})"), Error);
}

TEST(TokenizerJson, PartsThatAreNoneAreRefused) {
  for (const char* part : {"normalizer", "pre_tokenizer", "decoder", "post_processor"}) {
    for (
        const char* value :
        {R"({"type": "Magic"})", "{}", "[]", R"({"type": 1})", R"({"type": "Sequence"})",
         R"({"type": "Sequence", "normalizers": [{}], "pretokenizers": [{}], "decoders": [{}], "processors": [{}]})"})
      EXPECT_THROW(with(fmt::format("\"{}\": {}", part, value)), Error) << part << value;
  }
  for (
      const char* bad :
      {R"("normalizer": {"type": "Replace", "content": "x"})",
       R"("normalizer": {"type": "Replace", "pattern": {"Regex": "("}})",
       R"("normalizer": {"type": "Replace", "pattern": {"Other": "a"}})",
       R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "!"})",
       R"("normalizer": {"type": "Strip", "strip_left": "yes"})",
       R"("normalizer": {"type": "Prepend", "prepend": 1})",
       R"("pre_tokenizer": {"type": "Split", "pattern": "a", "behavior": "Other"})",
       R"("pre_tokenizer": {"type": "FixedLength", "length": 0})",
       R"("pre_tokenizer": {"type": "CharDelimiterSplit"})",
       R"("pre_tokenizer": {"type": "Metaspace", "replacement": ""})",
       R"("pre_tokenizer": {"type": "Metaspace", "replacement": "abcde"})",
       R"("decoder": {"type": "Strip", "content": ""})",
       R"("decoder": {"type": "Strip", "start": -1})",
       R"("decoder": {"type": "Replace", "content": "x"})",
       R"("post_processor": {"type": "BertProcessing", "sep": ["</s>", 2]})",
       R"("post_processor": {"type": "BertProcessing", "sep": ["</s>", 2], "cls": [1]})",
       R"("post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["x", 9]})",
       R"("post_processor": {"type": "TemplateProcessing"})",
       R"("post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}], "special_tokens": {}})",
       R"("added_tokens": [{"id": 4000000, "content": "x"}])",
       R"("added_tokens": [{"content": "x"}])",
       R"("added_tokens": [{"id": 3, "content": 1}])"})
    EXPECT_THROW(with(bad), Error) << bad;
  EXPECT_NO_THROW(with(R"("added_tokens": {"a": 1})"));
  EXPECT_NO_THROW(with(R"("pre_tokenizer": {"type": "Metaspace", "replacement": "\uD83D\uDE00"})"));
}

TEST(TokenizerJson, BosIsWhatThePostProcessorBeginsWith) {
  EXPECT_EQ(
      with(R"("post_processor": {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]})")->bos(),
      1U);
  EXPECT_EQ(with(R"("post_processor": null)")->bos(), std::nullopt);
  const std::string text = R"({"Sequence": {"id": "A"}})", end = R"({"SpecialToken": {"id": "e"}})";
  const std::string special = R"(], "special_tokens": {"e": {"ids": [2]}}})";
  const std::string begin = R"("post_processor": {"type": "TemplateProcessing", "single": [)";
  EXPECT_EQ(with(begin + text + ", " + end + special)->bos(), std::nullopt);
  EXPECT_EQ(with(begin + end + ", " + text + special)->bos(), 2U);
  EXPECT_EQ(with(begin + end + special)->bos(), std::nullopt);
  const std::string template_ = R"({"type": "TemplateProcessing", "single": [)" + end + special;
  const std::string sequence =
      R"("post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, )";
  EXPECT_EQ(with(sequence + template_ + "]}")->encode("u"), Ids{2});  // as the crate: the text is not in it
  TokenizerNeighbours named;
  named.bos = "</s>";
  const std::string bert =
      R"({"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "<s>": 1, "</s>": 2}}, )"
      R"("post_processor": {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]}})";
  EXPECT_EQ(read_hf_tokenizer(bert, named, "made")->bos(), 2U);
}

// "unk_id" is Unigram's, "unk_token" the others'; an id that there is not is none.
TEST(TokenizerJson, TheUnknownTokenIsNamedOrNumbered) {
  EXPECT_EQ(with("\"x\": 0")->special().unk, 0U);
  EXPECT_EQ(model(R"("type": "Unigram", "unk_id": 1, "vocab": [["a", 0], ["b", 0]])")->special().unk, 1U);
  EXPECT_EQ(model(R"("type": "Unigram", "unk_id": 2, "vocab": [["a", 0], ["b", 0]])")->special().unk,
            std::nullopt);
  EXPECT_EQ(model(R"("type": "Unigram", "unk_id": null, "vocab": [["a", 0]])")->special().unk, std::nullopt);
  EXPECT_THROW(model(R"("type": "Unigram", "unk_id": null, "vocab": [["a", 0]])")->encode("b"), Error);
  EXPECT_THROW(model(R"("type": "WordLevel", "vocab": {"a": 0})")->encode("b"), Error);
  TokenizerNeighbours named;
  named.unk = "a";
  EXPECT_EQ(
      read_hf_tokenizer(R"({"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "a": 1}}})",
                        named, "made")
          ->special()
          .unk,
      1U);
}

// A normalizer that makes much of little is stopped: 16 times the text and 64 kB.
TEST(TokenizerJson, NormalizersMayNotGrowATextWithoutEnd) {
  const auto grown = [](std::size_t bytes) {
    return with(
        fmt::format(R"("normalizer": {{"type": "Replace", "pattern": {{"String": "a"}}, "content": "{}"}})",
                    std::string(bytes, 'x')));
  };
  EXPECT_NO_THROW(grown(65000)->encode("a"));
  EXPECT_THROW(grown(66000)->encode("a"), Error);
  EXPECT_THROW(grown(2000)->encode(std::string(50, 'a')), Error);
  const std::string prepend =
      fmt::format(R"({{"type": "Prepend", "prepend": "{}"}})", std::string(40000, 'x'));
  EXPECT_NO_THROW(
      with("\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [" + prepend + "]}")->encode("a"));
  EXPECT_THROW(
      with("\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [" + prepend + ", " + prepend + "]}")
          ->encode("a"),
      Error);
}

TEST(AddedTokens, HaveAtMost1024Bytes) {
  EXPECT_NO_THROW(AddedTokenFinder({{0, std::string(1024, 'x')}}));
  EXPECT_THROW(AddedTokenFinder({{0, std::string(1025, 'x')}}), Error);
}

TEST(Unigram, PiecesHaveAtMost4096Bytes) {
  for (const std::size_t length : {4096U, 4097U}) {
    Vocabulary vocabulary;
    vocabulary.set(0, std::string(length, 'x'));
    if (length == 4096)
      EXPECT_NO_THROW(make_unigram(vocabulary, {0}, {}));
    else
      EXPECT_THROW(make_unigram(vocabulary, {0}, {}), Error);
  }
}

TEST(ByteTrie, FindsEveryPrefixShortestFirst) {
  const ByteTrie trie({{"ab", 1},
                       {"a", 2},
                       {"abcd", 3},
                       {"", 9},
                       {"b", 4},
                       {"ab", 5},
                       {"\xFF", 6},
                       {std::string_view("\0", 1), 7}});
  std::vector<std::pair<std::size_t, std::uint32_t>> found;
  trie.for_each_prefix("abcde",
                       [&](std::size_t length, std::uint32_t value) { found.emplace_back(length, value); });
  EXPECT_EQ(found, (std::vector<std::pair<std::size_t, std::uint32_t>>{{1, 2}, {2, 1}, {4, 3}}));
  EXPECT_EQ(trie.longest_prefix("abcx")->length, 2U);
  EXPECT_EQ(trie.longest_prefix("abcd")->value, 3U);
  EXPECT_EQ(trie.longest_prefix("\xFFz")->value, 6U);
  EXPECT_EQ(trie.longest_prefix(std::string_view("\0", 1))->value, 7U);
  EXPECT_FALSE(trie.longest_prefix("c"));
  EXPECT_FALSE(trie.longest_prefix(""));
  EXPECT_FALSE(trie.empty());
  EXPECT_TRUE(ByteTrie({{"", 1}}).empty());
  EXPECT_TRUE(ByteTrie().empty());
  EXPECT_FALSE(ByteTrie().longest_prefix("a"));
}

// GPT-2's bytes_to_unicode(): printable Latin-1 stands for itself, the other 68 bytes from U+0100 on.
TEST(ByteLevel, AlphabetOfGpt2) {
  const auto of = [](int byte) {
    std::string out;
    byte_level::append_encoded(out, std::string(1, static_cast<char>(byte)));
    return unicode::character_at(out, 0).code;
  };
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const auto code = static_cast<char32_t>(itself ? byte : next++);
    EXPECT_EQ(of(byte), code) << byte;
    EXPECT_EQ(byte_level::byte_of(code), byte);
  }
  EXPECT_EQ(next, 0x144);
  for (const char32_t none : {char32_t{0x20}, char32_t{0x7F}, char32_t{0xAD}, char32_t{0x144},
                              char32_t{0x1FF}, char32_t{0x200}, char32_t{0x10FFFF}})
    EXPECT_EQ(byte_level::byte_of(none), std::nullopt);
  EXPECT_EQ(byte_level::decoded("Ġa"), " a");
  EXPECT_EQ(byte_level::decoded("a b"), std::nullopt);
  EXPECT_EQ(byte_level::decoded(""), "");
}

// What a stream gives is whole characters: of one in three bytes nothing until the last.
TEST(TokenStream, GivesWholeCharacters) {
  std::string vocab;
  for (int byte = 0; byte < 256; ++byte) vocab += fmt::format("\"<0x{:02X}>\": {}, ", byte, byte);
  const auto tokenizer =
      read("{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"merges\": [], \"vocab\": {" + vocab +
           "\"x\": 256, \"<c>\": 257}}, \"decoder\": {\"type\": \"ByteFallback\"}, "
           "\"added_tokens\": [{\"id\": 257, \"content\": \"<c>\", \"special\": true}]}");
  const auto streamed = [&](const Ids& ids, bool skip_special = true) {
    TokenStream stream(*tokenizer, skip_special);
    std::vector<std::string> parts;
    for (const TokenId id : ids) parts.push_back(stream.push(id));
    parts.push_back(stream.finish());
    return parts;
  };
  using Parts = std::vector<std::string>;
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(streamed({0x41, 0xC3, 0xA9, 0x42}), (Parts{"A", "", "é", "B", ""}));
  EXPECT_EQ(streamed({0xE2, 0x98, 0x83}), (Parts{"", "", "☃", ""}));
  EXPECT_EQ(streamed({0xF0, 0x9F, 0x98, 0x80}), (Parts{"", "", "", "😀", ""}));
  EXPECT_EQ(streamed({0xF0, 0x9F, 0x98}), (Parts{"", "", "", bad}));
  EXPECT_EQ(streamed({0xF0, 0x9F, 256}), (Parts{"", "", bad + "x", ""}));
  EXPECT_EQ(streamed({0xE2, 0xE2, 0x98, 0x83}), (Parts{"", bad, "", "☃", ""}));
  EXPECT_EQ(streamed({0x80, 256}), (Parts{bad, "x", ""}));
  EXPECT_EQ(streamed({257, 256}), (Parts{"", "x", ""}));
  EXPECT_EQ(streamed({257, 256}, false), (Parts{"<c>", "x", ""}));
}

// Of pairs that cost the same the leftmost merges first.
TEST(MergeQueue, MergesTheCheapestThenTheLeftmost) {
  const auto merged = [](std::string_view word, const std::vector<std::pair<std::string, double>>& pieces) {
    MergeQueue queue;
    for (std::uint32_t i = 0; i < word.size(); ++i) queue.add(i, 1, 0);
    queue.run([&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merge> {
      const std::string both(word.substr(left.begin, left.length + right.length));
      for (const auto& [piece, cost] : pieces) {
        if (piece == both) return Merge{cost, 7};
      }
      return std::nullopt;
    });
    std::string text;
    queue.for_each([&](const MergeSymbol& symbol) {
      text += std::string(word.substr(symbol.begin, symbol.length)) + '|';
    });
    return text;
  };
  EXPECT_EQ(merged("aaa", {{"aa", 1}}), "aa|a|");
  EXPECT_EQ(merged("aaaaa", {{"aa", 1}, {"aaaa", 2}}), "aaaa|a|");
  EXPECT_EQ(merged("abc", {{"ab", 1}, {"bc", 1}}), "ab|c|");
  EXPECT_EQ(merged("abc", {{"ab", 2}, {"bc", 1}}), "a|bc|");
  EXPECT_EQ(merged("abcd", {{"bc", 1}, {"abc", 2}, {"bcd", 2}}), "abc|d|");
  EXPECT_EQ(merged("abcd", {{"bc", 1}, {"abc", 3}, {"bcd", 2}}), "a|bcd|");
  EXPECT_EQ(merged("abcd", {{"cd", 1}, {"bcd", 2}, {"abcd", 3}}), "abcd|");
  EXPECT_EQ(merged("", {}), "");
}

}  // namespace
}  // namespace assay
