// The tokenizer's files out of GGUF metadata: tokenizer.json for byte-level BPE, tokenizer.model for
// SentencePiece, and tokenizer_config.json for both.
#include <fmt/format.h>

#include <algorithm>

#include "core/formats/sentencepiece_vocab.h"
#include "core/model/gguf_import.h"
#include "core/model/gguf_tokenizer.h"
#include "core/system/error.h"

namespace assay {
namespace {

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
        added.push_back({{"id", id},
                         {"content", texts_[id]},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", control}});
      else
        vocabulary[texts_[id]] = id;
    }
    const bool bare = pre == "llama-bpe";  // Llama 3 takes a word that is a token as it is, before any merge
    const ParsedJson bytes = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
    const ParsedJson json = {{"version", "1.0"},
                             {"truncation", nullptr},
                             {"padding", nullptr},
                             {"added_tokens", std::move(added)},
                             {"normalizer", nullptr},
                             {"pre_tokenizer", cutters},
                             {"post_processor", post_processor()},
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

  ParsedJson post_processor() const {
    const auto bos = special("tokenizer.ggml.bos_token_id");
    if (!flag("tokenizer.ggml.add_bos_token").value_or(false) || !bos) return nullptr;
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
    return true;
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
