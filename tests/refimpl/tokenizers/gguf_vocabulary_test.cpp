// Vocabularies of GGUF files, made of those that the tokenizers crate and SentencePiece were asked about: the
// same texts must give the same ids. What each flag of tokenizer.ggml does: docs/gguf.md of ggml,
// src/llama-vocab.cpp of llama.cpp.
#include "refimpl/tokenizers/gguf_vocabulary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "refimpl/tokenizers/load.h"
#include "refimpl/tokenizers/sentencepiece_model.h"
#include "refimpl/tokenizers/unicode.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using Ids = std::vector<TokenId>;

// The keys of a vocabulary, one after the other.
class Keys {
 public:
  Keys& text(const std::string& name, const std::string& value) {
    keys_.text_key("tokenizer." + name, value);
    return counted();
  }
  Keys& id(const std::string& name, std::uint32_t value) {
    keys_.u32_key("tokenizer.ggml." + name + "_token_id", value);
    return counted();
  }
  Keys& flag(const std::string& name, bool value) {
    keys_.text("tokenizer.ggml." + name).u32(7).raw(std::string(1, value ? '\1' : '\0'));
    return counted();
  }
  Keys& strings(const std::string& name, const std::vector<std::string>& values) {
    array(name, 8, values.size());
    for (const std::string& value : values) keys_.text(value);
    return counted();
  }
  Keys& floats(const std::string& name, const std::vector<float>& values) {
    array(name, 6, values.size());
    keys_.raw({reinterpret_cast<const char*>(values.data()), 4 * values.size()});
    return counted();
  }
  Keys& integers(const std::string& name, const std::vector<std::int32_t>& values) {
    array(name, 5, values.size());
    keys_.raw({reinterpret_cast<const char*>(values.data()), 4 * values.size()});
    return counted();
  }
  Keys& bytes(const std::string& name, const std::string& values) {
    array(name, 0, values.size());
    keys_.raw(values);
    return counted();
  }

  std::unique_ptr<Tokenizer> read() const {
    test::GgufBytes file(0, count_);
    file.raw(std::string_view(keys_.take()).substr(24));
    const std::string bytes = file.align(32).take();
    return read_gguf_tokenizer(gguf::parse_header(std::as_bytes(std::span(bytes)), bytes.size(), "made"),
                               "made");
  }

 private:
  void array(const std::string& name, std::uint32_t type, std::size_t count) {
    keys_.text("tokenizer.ggml." + name).u32(9).u32(type).u64(count);
  }
  Keys& counted() {
    ++count_;
    return *this;
  }
  test::GgufBytes keys_{0, 0};
  std::int64_t count_ = 0;
};

fs::path fixtures() {
  return test::source_dir() / "data/fixtures";
}

// ---------------------------------------------------------------------------------- as the tokenizers crate

struct HfModel {
  std::vector<std::string> pieces, merges;
  std::vector<std::int32_t> kinds;
};

HfModel hf_model(const std::string& name) {
  const ParsedJson file = read_json(fixtures() / "tokenizers" / (name + ".json"));
  HfModel made;
  for (const auto& [piece, id] : file.at("model").at("vocab").items()) {
    const auto at = id.get<std::size_t>();
    if (made.pieces.size() <= at) made.pieces.resize(at + 1);
    made.pieces[at] = piece;
  }
  made.kinds.assign(made.pieces.size(), 1);
  for (const ParsedJson& token : file.at("added_tokens")) {
    const auto at = token.at("id").get<std::size_t>();  // those behind the model's pieces are left out
    if (at < made.kinds.size()) made.kinds[at] = 3;
  }
  if (file.at("model").contains("merges")) {
    for (const ParsedJson& merge : file.at("model").at("merges"))
      made.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return made;
}

Keys keys_of(const HfModel& model, const std::string& kind) {
  Keys keys;
  keys.text("ggml.model", kind).strings("tokens", model.pieces).integers("token_type", model.kinds);
  if (!model.merges.empty()) keys.strings("merges", model.merges);
  return keys;
}

// "ids" or "plain" (without special tokens) of the texts for which `same` says that GGUF means the same.
template <class Same>
void expect_as_crate(const Tokenizer& tokenizer, const std::string& name, const char* which, Same same) {
  std::size_t compared = 0;
  const ParsedJson all = read_json(fixtures() / "tokenizers/EXPECTED.json");
  for (const ParsedJson& each : all.at(name)) {
    const auto text = each.at("text").get<std::string>();
    if (!same(text)) continue;
    EXPECT_EQ(tokenizer.encode(text), each.at(which).get<Ids>()) << text;
    ++compared;
  }
  EXPECT_GE(compared, 15U);
}

bool without_masks(const std::string& text) {
  return text.find("<mask>") == std::string::npos;
}

TEST(GgufVocabulary, ByteLevelBpe) {
  Keys keys = keys_of(hf_model("byte_level"), "gpt2");
  keys.text("ggml.pre", "gpt-2").id("bos", 1).id("eos", 2).flag("add_space_prefix", true);
  const auto plain = keys.read();
  expect_as_crate(*plain, "byte_level", "plain", without_masks);
  EXPECT_EQ(plain->description(), "GGUF vocabulary: BPE, words cut as gpt-2 does");
  EXPECT_EQ(plain->decode(plain->encode("naïve 日本")), " naïve 日本");
  Keys around = keys;
  expect_as_crate(*around.flag("add_bos_token", true).flag("add_eos_token", true).read(), "byte_level", "ids",
                  without_masks);
  Keys separated = keys;
  EXPECT_EQ(separated.flag("add_sep_token", true).read()->encode("").back(), 2U);
  EXPECT_TRUE(plain->encode("").empty());
}

TEST(GgufVocabulary, SpacesAreNotPutInFrontUnlessAsked) {
  const HfModel model = hf_model("split_byte_level");
  Keys keys = keys_of(model, "gpt2");
  const auto same = [](const std::string& text) {
    return text.find("<w>") == std::string::npos && !text.starts_with("hello hello") &&
           text.find("\u0301") == std::string::npos;
  };
  // Nor has the crate's normal form C a place in GGUF.
  Keys plain = keys;
  const auto tokenizer = plain.text("ggml.pre", "chatglm-bpe").id("bos", 1).id("eos", 2).read();
  expect_as_crate(*tokenizer, "split_byte_level", "ids", same);
  // Llama 3's way of cutting adds BOS unless the file says otherwise, and takes whole words first.
  Keys llama = keys;
  EXPECT_EQ(llama.text("ggml.pre", "llama-bpe").id("bos", 1).read()->encode("a").front(), 1U);
  EXPECT_NE(llama.flag("add_bos_token", false).read()->encode("a").front(), 1U);
  Keys unknown = keys;
  EXPECT_THROW(unknown.text("ggml.pre", "nobody's").read(), Error);
}

TEST(GgufVocabulary, WholeWordsComeBeforeMergesWhereThePatternSaysSo) {
  Keys keys;
  keys.text("ggml.model", "gpt2")
      .strings("tokens", {"a", "b", "c", "ab", "bc", "abc", "cc"})
      .strings("merges", {"a b", "b c", "ab", "x y", "c"});
  Keys glm = keys, chat = keys, llama = keys, none = keys;
  EXPECT_EQ(glm.text("ggml.pre", "glm4").read()->encode("abc"), (Ids{5}));
  EXPECT_EQ(chat.text("ggml.pre", "chatglm-bpe").read()->encode("abc"), (Ids{3, 2}));
  EXPECT_EQ(chat.read()->encode("cc"), (Ids{2, 2}));  // a merge of one piece is none
  EXPECT_EQ(llama.text("ggml.pre", "llama-bpe").read()->encode("abc"), (Ids{5}));
  EXPECT_EQ(none.read()->description(), "GGUF vocabulary: BPE, words cut as default does");
}

TEST(GgufVocabulary, WordPieceWithMarksBeforeWords) {
  HfModel model = hf_model("bert");
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    std::string& piece = model.pieces[i];
    if (piece.starts_with("##"))
      piece.erase(0, 2);
    else if (model.kinds[i] == 1)
      piece.insert(0, "▁");
  }
  Keys keys = keys_of(model, "bert");
  keys.id("unknown", 0).id("cls", 1);
  Keys spelled = keys;  // GGUF's own spelling comes first
  const auto tokenizer = spelled.id("seperator", 2).id("separator", 3).read();
  expect_as_crate(*tokenizer, "bert", "ids", without_masks);
  EXPECT_EQ(tokenizer->description(), "GGUF vocabulary: WordPiece");
  EXPECT_EQ(tokenizer->bos(), 1U);
  EXPECT_EQ(tokenizer->eos(), 2U);
  Keys right = keys;
  expect_as_crate(*right.id("separator", 2).read(), "bert", "ids", without_masks);
  Keys bare = keys;
  expect_as_crate(*bare.id("separator", 2).flag("add_bos_token", false).flag("add_eos_token", false).read(),
                  "bert", "plain", without_masks);
  Keys named = keys;
  EXPECT_EQ(named.id("bos", 3).id("separator", 2).read()->bos(), 3U);
  Keys cased = keys;
  const auto kept = cased.flag("normalizer.lowercase", false).read();
  EXPECT_NE(kept->encode("Hello"), kept->encode("hello"));
  EXPECT_EQ(tokenizer->encode("Hello"), tokenizer->encode("hello"));
  EXPECT_EQ(tokenizer->encode("caf\u00e9"), tokenizer->encode("cafe"));
  Keys accents = keys;
  const auto accented = accents.flag("normalizer.strip_accents", false).read();
  EXPECT_NE(accented->encode("caf\u00e9"), accented->encode("cafe"));
  EXPECT_THROW(keys_of(model, "bert").read(), Error);  // no unknown token
}

TEST(GgufVocabulary, BpeOverMarkedText) {
  const HfModel model = hf_model("metaspace_never_false");
  Keys keys = keys_of(model, "gemma4");
  keys.id("bos", 1).id("eos", 2).id("unknown", 0);
  const auto whole_lines = [](const std::string& text) { return text.find('\n') == std::string::npos; };
  const auto tokenizer = keys.read();
  const ParsedJson all = read_json(fixtures() / "tokenizers/EXPECTED.json");
  for (const ParsedJson& each : all.at("metaspace_never_false")) {
    const auto text = each.at("text").get<std::string>();
    if (whole_lines(text)) {
      EXPECT_EQ(tokenizer->encode(text, {.add_special = false}), each.at("plain").get<Ids>()) << text;
    }
  }
  EXPECT_EQ(tokenizer->description(), "GGUF vocabulary: BPE with byte fallback");
  EXPECT_EQ(tokenizer->encode("").size(), 1U);  // Gemma's BOS, whatever the file says
  EXPECT_EQ(tokenizer->encode("").front(), 1U);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a b\n\nc☃", {.add_special = false})), "a b\n\nc☃");
  Keys ended = keys;
  EXPECT_EQ(ended.flag("add_eos_token", true).read()->encode("").back(), 2U);
  // gpt2 under the name of a pattern of marked text is the same but for BOS.
  Keys named = keys_of(model, "gpt2");
  named.text("ggml.pre", "gemma4").id("bos", 1).id("unknown", 0);
  expect_as_crate(*named.read(), "metaspace_never_false", "plain", whole_lines);
  EXPECT_EQ(named.flag("add_bos_token", true).read()->encode("").size(), 1U);
}

// A line's end is a word of its own, whatever the merges say.
TEST(GgufVocabulary, MarkedTextIsCutAtEndsOfLines) {
  Keys keys;
  keys.text("ggml.model", "gemma4")
      .strings("tokens", {"a", "\n", "a\n", "\n\n", "\na"})
      .strings("merges", {"a \n", "\n \n", "\n a"});
  EXPECT_EQ(keys.read()->encode("a\n\na"), (Ids{0, 3, 0}));
}

// Neither the character nor its bytes are in the vocabulary.
TEST(GgufVocabulary, MarkedTextHasAnUnknownToken) {
  Keys keys;
  keys.text("ggml.model", "gemma4")
      .strings("tokens", {"a", "aa", "?"})
      .strings("merges", {"a a"})
      .id("unknown", 2);
  EXPECT_EQ(keys.read()->encode("aab", {.add_special = false}), (Ids{1, 2}));
}

// ------------------------------------------------------------------------------------------ as SentencePiece

Keys keys_of(const SentencePieceModel& model, const std::string& kind) {
  std::vector<std::string> pieces;
  std::vector<float> scores;
  std::vector<std::int32_t> kinds;
  for (TokenId id = 0; id < model.vocabulary.size(); ++id) {
    pieces.push_back(model.vocabulary.at(id));
    scores.push_back(static_cast<float>(model.scores[id]));
    kinds.push_back(static_cast<std::int32_t>(model.vocabulary.kind(id)));
  }
  Keys keys;
  keys.text("ggml.model", kind)
      .strings("tokens", pieces)
      .floats("scores", scores)
      .integers("token_type", kinds);
  return keys;
}

SentencePieceModel sentencepiece_model(const std::string& name) {
  return parse_sentencepiece_model(test::read_file(fixtures() / "sentencepiece" / (name + ".model")), "made");
}

void expect_as_library(const Tokenizer& tokenizer, const std::string& name, bool decodes) {
  const ParsedJson all = read_json(fixtures() / "sentencepiece/EXPECTED.json");
  for (const ParsedJson& each : all.at(name)) {
    const auto text = each.at("text").get<std::string>();
    // llama.cpp looks for <s> and <w> in the text and puts a space behind them, and keeps what is all spaces.
    if (text.find('<') != std::string::npos || text.empty()) continue;
    EXPECT_EQ(tokenizer.encode(text, {.add_special = false}), each.at("ids").get<Ids>()) << text;
    if (decodes) {
      EXPECT_EQ(unicode::with_replacements(tokenizer.decode(each.at("ids").get<Ids>())),
                each.at("decoded").get<std::string>());
    }
  }
}

TEST(GgufVocabulary, SentencePieceBpe) {
  const SentencePieceModel model = sentencepiece_model("bpe_bytes");
  Keys keys = keys_of(model, "llama");
  keys.id("bos", 1).id("eos", 2);
  const auto tokenizer = keys.read();
  expect_as_library(*tokenizer, "bpe_bytes", true);
  EXPECT_EQ(tokenizer->description(), "GGUF vocabulary: SentencePiece BPE");
  EXPECT_EQ(tokenizer->encode("a").front(), 1U);
  EXPECT_NE(tokenizer->encode("a").back(), 2U);
  EXPECT_EQ(tokenizer->encode("a</s>").back(), 2U);
  EXPECT_NE(tokenizer->encode("a</s>", {.parse_special = false}).back(), 2U);
  Keys turned = keys;
  const auto other = turned.flag("add_bos_token", false).flag("add_eos_token", true).read();
  EXPECT_NE(other->encode("a").front(), 1U);
  EXPECT_EQ(other->encode("a").back(), 2U);
  Keys bare = keys;
  const auto unprefixed = bare.flag("add_space_prefix", false).read();
  EXPECT_EQ(unprefixed->decode(unprefixed->encode(" a", {.add_special = false})), " a");
  Keys tidy = keys;
  EXPECT_EQ(tidy.flag("remove_extra_whitespaces", true).read()->encode("a  a"), tokenizer->encode("a a"));
  EXPECT_NE(tokenizer->encode("a  a"), tokenizer->encode("a a"));
}

TEST(GgufVocabulary, SentencePieceUnigram) {
  const SentencePieceModel model = sentencepiece_model("unigram_bytes");
  Keys keys = keys_of(model, "t5");
  keys.id("bos", 1).id("eos", 2).flag("remove_extra_whitespaces", true);
  const auto tokenizer = keys.read();
  expect_as_library(*tokenizer, "unigram_bytes", true);
  EXPECT_EQ(tokenizer->description(), "GGUF vocabulary: SentencePiece Unigram");
  EXPECT_NE(tokenizer->encode("a").front(), 1U);
  EXPECT_EQ(tokenizer->encode("a").back(), 2U);
  const SentencePieceModel mapped = sentencepiece_model("unigram");
  Keys with_map = keys_of(mapped, "t5");
  with_map.bytes("precompiled_charsmap", mapped.charsmap)
      .flag("remove_extra_whitespaces", true)
      .id("unknown", 0);
  expect_as_library(*with_map.read(), "unigram", true);
}

TEST(GgufVocabulary, TheFirstPieceMayBeTheUnknownOne) {
  Keys keys;
  keys.text("ggml.model", "t5")
      .strings("tokens", {"<unk>", "a"})
      .floats("scores", {0, -1})
      .integers("token_type", {2, 1});
  keys.flag("add_space_prefix", false);
  EXPECT_EQ(keys.read()->encode("ab"), (Ids{1, 0}));
  Keys none;
  none.text("ggml.model", "t5")
      .strings("tokens", {"b", "a"})
      .floats("scores", {0, -1})
      .flag("add_space_prefix", false);
  EXPECT_EQ(none.read()->encode("ab"), (Ids{1, 0}));
  EXPECT_THROW(none.read()->encode("c"), Error);
}

// --------------------------------------------------------------------------------------------- what files
// say

Keys small() {
  Keys keys;
  keys.text("ggml.model", "gpt2")
      .strings("tokens", {"a", "<c>", "<u>", "", "<|eot_id|>", "<|eom_id|>", "z", "<unk>", "q"})
      .integers("token_type", {1, 3, 4, 1, 3, 3, 9, 2})
      .strings("merges", {});
  return keys;
}

TEST(GgufVocabulary, KindsAndSpecialIds) {
  Keys keys = small();
  keys.id("bos", 1)
      .id("eos", 8)
      .id("unknown", 7)
      .id("padding", 0)
      .id("eot", 6)
      .id("eom", 99)
      .text("chat_template", "{{ x }}");
  const auto tokenizer = keys.read();
  EXPECT_EQ(tokenizer->vocab_size(), 9U);
  EXPECT_EQ(tokenizer->piece(3), "[EMPTY_3]");
  EXPECT_EQ(tokenizer->vocabulary().kind(6), PieceKind::normal);  // a kind that there is not
  EXPECT_EQ(tokenizer->vocabulary().kind(8), PieceKind::normal);  // none given
  EXPECT_EQ(tokenizer->vocabulary().kind(5), PieceKind::control);
  EXPECT_EQ(tokenizer->bos(), 1U);
  EXPECT_EQ(tokenizer->special().pad, 0U);
  EXPECT_EQ(tokenizer->special().unk, 7U);
  EXPECT_EQ(tokenizer->special().end_of_generation, (Ids{4, 5, 6, 8}));
  EXPECT_EQ(tokenizer->chat_template(), "{{ x }}");
  EXPECT_EQ(tokenizer->encode("a<c><u><unk>"), (Ids{0, 1, 2, 7}));
  EXPECT_EQ(tokenizer->encode("<u>", {.parse_special = false}), (Ids{2}));
  EXPECT_NE(tokenizer->encode("<c>", {.parse_special = false}), (Ids{1}));
  EXPECT_NE(tokenizer->encode("<unk>", {.parse_special = false}), (Ids{7}));
  EXPECT_EQ(small().id("eos", 9).read()->eos(), std::nullopt);
  EXPECT_EQ(small().id("eom", 6).read()->special().end_of_generation, (Ids{4, 5, 6}));
}

TEST(GgufVocabulary, WhatIsMissingIsRefused) {
  EXPECT_THROW(Keys().text("other", "x").read(), Error);
  EXPECT_THROW(Keys().text("ggml.model", "gpt2").read(), Error);
  EXPECT_THROW(Keys().text("ggml.model", "gpt2").integers("tokens", {1}).read(), Error);
  EXPECT_THROW(Keys().text("ggml.model", "gpt2").strings("tokens", {"a"}).read(), Error);
  EXPECT_THROW(Keys().text("ggml.model", "gpt2").strings("tokens", {"a"}).integers("merges", {1}).read(),
               Error);
  EXPECT_THROW(Keys().text("ggml.model", "rwkv").strings("tokens", {"a"}).read(), Error);
  EXPECT_THROW(
      Keys().text("ggml.model", "llama").strings("tokens", {"a"}).floats("scores", {std::nanf("")}).read(),
      Error);
  EXPECT_NO_THROW(Keys().text("ggml.model", "llama").strings("tokens", {"a"}).floats("scores", {}).read());
}

}  // namespace
}  // namespace assay
