// The tokenizer's files out of GGUF metadata: tokenizer.json for byte-level BPE, tokenizer.model for
// SentencePiece, and tokenizer_config.json for both.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "core/formats/sentencepiece_vocab.h"
#include "core/model/gguf_import.h"
#include "core/model/gguf_tokenizer.h"
#include "core/system/error.h"
#include "core/system/json.h"

namespace assay {
namespace {

constexpr std::size_t kLongestPiece = 1024;  // of real vocabularies: 64

using Files = std::vector<std::pair<std::string, std::string>>;

class TokenizerFiles {
 public:
  TokenizerFiles(const gguf::Header& header, std::vector<std::string>& notes)
      : header_(header), notes_(notes) {}

  Files write() {
    const std::string model = header_.text("tokenizer.ggml.model").value_or("none");
    if (model != "gpt2" && model != "llama") {
      if (model != "none")
        notes_.push_back(fmt::format("the tokenizer \"{}\" is not written", model));
      else
        notes_.emplace_back("the file has no tokenizer, so none is written");
      return {};
    }
    texts_ = array("tokenizer.ggml.tokens").strings();
    kinds_ = array("tokenizer.ggml.token_type").integers();
    if (kinds_.size() != texts_.size())
      throw Error::input("tokenizer.ggml.token_type has not one entry for every token");
    const bool written = model == "gpt2" ? write_bpe() : write_pieces();
    if (written) files_.emplace_back("tokenizer_config.json", settings(model).dump(2) + "\n");
    return std::move(files_);
  }

 private:
  const gguf::Array& array(std::string_view key) const {
    const gguf::KeyValue* found = header_.find(key);
    const auto* value = found == nullptr ? nullptr : std::get_if<gguf::Array>(&found->value);
    if (value == nullptr) throw Error::input(fmt::format("metadata has no list {}", key));
    return *value;
  }
  bool is_kind(std::size_t token, TokenKind kind) const {
    return kinds_[token] == static_cast<std::int64_t>(kind);
  }
  std::optional<std::string> special(std::string_view key) const {
    const auto id = header_.number(key);
    return id && *id < texts_.size() ? std::optional(texts_[*id]) : std::nullopt;
  }
  std::optional<bool> flag(std::string_view key) const {
    const gguf::KeyValue* found = header_.find(key);
    const auto* value = found == nullptr ? nullptr : std::get_if<bool>(&found->value);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }

  bool write_bpe() {
    const std::string pre = header_.text("tokenizer.ggml.pre").value_or("");
    const ParsedJson cutters = pre_tokenizer_json(pre);
    if (cutters.is_null()) {
      notes_.push_back(
          fmt::format("tokenizer.json is not written: how \"{}\" cuts text is not known here", pre));
      return false;
    }
    ParsedJson vocabulary = ParsedJson::object(), added = ParsedJson::array();
    for (std::size_t id = 0; id < texts_.size(); ++id) {
      if (is_kind(id, TokenKind::unused)) continue;
      const bool control = is_kind(id, TokenKind::control);
      if (control || is_kind(id, TokenKind::user_defined))
        added.push_back(added_token(id, control));
      else
        vocabulary[texts_[id]] = id;
    }
    // Llama 3 and GLM-4 take a word that is a token as it is, before any merge.
    const bool bare = pre == "llama-bpe" || pre == "glm4" || pre == "lfm2" || pre == "falcon-h1";
    const ParsedJson bytes = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
    const ParsedJson json = {{"version", "1.0"},
                             {"truncation", nullptr},
                             {"padding", nullptr},
                             {"added_tokens", std::move(added)},
                             {"normalizer", normalizer_json(pre)},
                             {"pre_tokenizer", cutters},
                             {"post_processor", post_processor(false)},
                             {"decoder", bytes},
                             {"model",
                              {{"type", "BPE"},
                               {"dropout", nullptr},
                               {"unk_token", nullptr},
                               {"continuing_subword_prefix", nullptr},
                               {"end_of_word_suffix", nullptr},
                               {"fuse_unk", false},
                               {"byte_fallback", false},
                               {"ignore_merges", bare},
                               {"vocab", std::move(vocabulary)},
                               {"merges", array("tokenizer.ggml.merges").strings()}}}};
    files_.emplace_back("tokenizer.json", json.dump() + "\n");
    return true;
  }

  // `by_default`: whether a bos is put before a text where no key says so.
  ParsedJson post_processor(bool by_default) const {
    const auto bos = special("tokenizer.ggml.bos_token_id");
    if (!flag("tokenizer.ggml.add_bos_token").value_or(by_default) || !bos) return nullptr;
    const std::uint64_t id = *header_.number("tokenizer.ggml.bos_token_id");
    const auto token = [&](int sequence) {
      return ParsedJson{{"SpecialToken", {{"id", *bos}, {"type_id", sequence}}}};
    };
    const auto text = [](const char* name, int sequence) {
      return ParsedJson{{"Sequence", {{"id", name}, {"type_id", sequence}}}};
    };
    return {
        {"type", "TemplateProcessing"},
        {"single", ParsedJson::array({token(0), text("A", 0)})},
        {"pair", ParsedJson::array({token(0), text("A", 0), token(1), text("B", 1)})},
        {"special_tokens",
         {{*bos, {{"id", *bos}, {"ids", ParsedJson::array({id})}, {"tokens", ParsedJson::array({*bos})}}}}}};
  }

  bool write_pieces() {
    const std::vector<double> scores = array("tokenizer.ggml.scores").numbers();
    if (scores.size() != texts_.size())
      throw Error::input("tokenizer.ggml.scores has not one entry for every token");
    std::vector<SentencePiece> pieces;
    for (std::size_t id = 0; id < texts_.size(); ++id)
      pieces.push_back({texts_[id], static_cast<float>(scores[id]),
                        static_cast<SentencePiece::Type>(std::clamp<std::int64_t>(kinds_[id], 1, 6))});
    SentencePieceIds ids;
    ids.unknown = header_.number("tokenizer.ggml.unknown_token_id").value_or(0);
    ids.begin = header_.number("tokenizer.ggml.bos_token_id").value_or(1);
    ids.end = header_.number("tokenizer.ggml.eos_token_id").value_or(2);
    if (ids.unknown < pieces.size()) pieces[ids.unknown].type = SentencePiece::Type::unknown;
    const bool prefix = flag("tokenizer.ggml.add_space_prefix").value_or(true);
    files_.emplace_back("tokenizer.model", serialize_sentencepiece_bpe(pieces, ids, prefix));
    files_.emplace_back("tokenizer.json", pieces_as_bpe(pieces, ids, prefix).dump() + "\n");
    return true;
  }

  // The same as BPE: pieces are merged in the order of their scores. Every way to make a piece of two others
  // is a merge; of those with one score the longer left half goes first (transformers,
  // convert_slow_tokenizer.py).
  static std::vector<std::string> merges_of(const std::vector<SentencePiece>& pieces) {
    struct Merge {
      float score;
      std::size_t left_length, right_length;  // characters
      std::uint64_t left, right;
    };
    std::unordered_map<std::string_view, std::uint64_t> ids;
    for (std::size_t id = 0; id < pieces.size(); ++id) {
      if (pieces[id].type == SentencePiece::Type::normal) ids.emplace(pieces[id].text, id);
    }
    std::vector<Merge> merges;
    for (const SentencePiece& piece : pieces) {
      if (piece.type != SentencePiece::Type::normal || piece.text.size() > kLongestPiece) continue;
      const std::string_view text = piece.text;
      const std::size_t length = characters(text), first = merges.size();
      for (std::size_t cut = 1; cut < text.size(); ++cut) {
        const auto left = ids.find(text.substr(0, cut)), right = ids.find(text.substr(cut));
        if (left == ids.end() || right == ids.end()) continue;
        const std::size_t before = characters(left->first);
        merges.push_back({piece.score, before, length - before, left->second, right->second});
      }
      std::sort(merges.begin() + static_cast<std::ptrdiff_t>(first), merges.end(),
                [](const Merge& a, const Merge& b) {
                  return std::pair(a.left, a.right) < std::pair(b.left, b.right);
                });
    }
    std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
      return std::tuple(a.score, a.left_length, a.right_length) >
             std::tuple(b.score, b.left_length, b.right_length);
    });
    std::vector<std::string> texts;
    for (const Merge& merge : merges)
      texts.push_back(pieces[merge.left].text + " " + pieces[merge.right].text);
    return texts;
  }
  static std::size_t characters(std::string_view utf8) {
    return static_cast<std::size_t>(std::count_if(
        utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }

  ParsedJson pieces_as_bpe(const std::vector<SentencePiece>& pieces, const SentencePieceIds& ids,
                           bool prefix) const {
    constexpr const char* kSpace = "\xe2\x96\x81";
    ParsedJson vocabulary = ParsedJson::object(), added = ParsedJson::array();
    for (std::size_t id = 0; id < pieces.size(); ++id) {
      const SentencePiece::Type type = pieces[id].type;
      if (type == SentencePiece::Type::unused) continue;
      vocabulary[pieces[id].text] = id;
      const bool control = type == SentencePiece::Type::control || type == SentencePiece::Type::unknown;
      if (control || type == SentencePiece::Type::user_defined) added.push_back(added_token(id, control));
    }
    const auto replace = [](const char* from, const char* to) {
      return ParsedJson{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
    };
    ParsedJson normalizers = ParsedJson::array({replace(" ", kSpace)});
    if (prefix) normalizers.insert(normalizers.begin(), ParsedJson{{"type", "Prepend"}, {"prepend", kSpace}});
    ParsedJson decoders =
        ParsedJson::array({replace(kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
    if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    return {
        {"version", "1.0"},
        {"truncation", nullptr},
        {"padding", nullptr},
        {"added_tokens", std::move(added)},
        {"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
        {"pre_tokenizer", nullptr},
        {"post_processor", post_processor(true)},
        {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}},
        {"model",
         {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", ids.unknown < pieces.size() ? ParsedJson(pieces[ids.unknown].text) : ParsedJson()},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", true},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", merges_of(pieces)}}}};
  }

  ParsedJson added_token(std::size_t id, bool control) const {
    return {{"id", id},        {"content", texts_[id]}, {"single_word", false}, {"lstrip", false},
            {"rstrip", false}, {"normalized", false},   {"special", control}};
  }

  ParsedJson settings(const std::string& model) const {
    ParsedJson json = {{"tokenizer_class", model == "llama" ? "LlamaTokenizer" : "PreTrainedTokenizerFast"}};
    const std::pair<const char*, std::string_view> kTokens[] = {
        {"bos_token", "tokenizer.ggml.bos_token_id"},
        {"eos_token", "tokenizer.ggml.eos_token_id"},
        {"unk_token", "tokenizer.ggml.unknown_token_id"},
        {"pad_token", "tokenizer.ggml.padding_token_id"}};
    for (const auto& [name, key] : kTokens) {
      if (const auto text = special(key)) json[name] = *text;
    }
    for (const char* name : {"add_bos_token", "add_eos_token"}) {
      if (const auto value = flag(fmt::format("tokenizer.ggml.{}", name))) json[name] = *value;
    }
    if (const auto chat = header_.text("tokenizer.chat_template")) json["chat_template"] = *chat;
    return json;
  }

  const gguf::Header& header_;
  std::vector<std::string>& notes_;
  std::vector<std::string> texts_;
  std::vector<std::int64_t> kinds_;
  Files files_;
};

}  // namespace

Files hf_tokenizer(const gguf::Header& header, std::vector<std::string>& notes) {
  return TokenizerFiles(header, notes).write();
}

}  // namespace assay
