#include "core/model/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "core/formats/gguf_write.h"
#include "core/formats/sentencepiece_vocab.h"
#include "core/model/gguf_rules.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::uint64_t kLargestTokenizer = 256ull << 20;
constexpr JsonLimits kTokenizerJson = {
    .max_bytes = kLargestTokenizer, .max_depth = 64, .duplicate_keys = true};
constexpr std::uint64_t kGraniteVocabulary = 49152;  // and SmolLM's: no bos, whatever the file says
constexpr float kNoScore = -1000.0F, kPaddingScore = -10000.0F;

struct Vocabulary {
  std::vector<std::string> texts;
  std::vector<float> scores;  // empty: GGUF keeps none
  std::vector<std::int32_t> kinds;
};

std::string padding_text(std::uint64_t id) {
  return fmt::format("[PAD{}]", id);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Control, or user-defined and then with spaces for SentencePiece's "▁".
std::int32_t classify_added(std::string& text, bool special) {
  if (special || looks_special(text)) return static_cast<std::int32_t>(TokenKind::control);
  replace_all(text, "\xe2\x96\x81", " ");
  return static_cast<std::int32_t>(TokenKind::user_defined);
}

bool is_byte_token(std::string_view text) {
  const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  return text.size() == 6 && text.starts_with("<0x") && is_hex(text[3]) && is_hex(text[4]) && text[5] == '>';
}

class Tokenizer {
 public:
  Tokenizer(const fs::path& folder, const ModelConfig& config, const GgufFamily& family, std::string_view pre)
      : folder_(folder), family_(family), given_pre_(pre), size_(describe(config).vocabulary) {}

  std::vector<gguf::KeyValue> metadata() {
    // Without tokens to count, llama.cpp asks a key for the size of the embedding, of every architecture.
    if (given_pre_ == "none")
      return {gguf::text_value("tokenizer.ggml.model", "none"),
              gguf::u32_value(std::string(family_.architecture) + ".vocab_size", size_)};
    settings_ = there("tokenizer_config.json") ? read_json(folder_ / "tokenizer_config.json", kTokenizerJson)
                                               : ParsedJson::object();
    const bool llama = family_.vocabulary == GgufFamily::Vocabulary::llama;
    if (llama && settings_.is_object() && settings_.contains("add_prefix_space") &&
        settings_.at("add_prefix_space").is_boolean())
      keys_.push_back(
          gguf::bool_value("tokenizer.ggml.add_space_prefix", settings_.at("add_prefix_space").get<bool>()));
    const bool pieces_first = family_.vocabulary != GgufFamily::Vocabulary::byte_level;
    if (pieces_first && there("tokenizer.model")) {
      write("llama", "default", read_pieces());
    } else {
      read_tokenizer_json();
      if (llama && falls_back_to_bytes())
        write("llama", "default", read_byte_fallback());
      else
        write_byte_level();
    }
    add_what_the_family_adds();
    if (llama && size_ == kGraniteVocabulary)
      gguf::set_value(keys_, gguf::bool_value("tokenizer.ggml.add_bos_token", false));
    return std::move(keys_);
  }

 private:
  bool there(const char* name) const {
    std::error_code error;
    return fs::exists(folder_ / name, error);
  }

  void add_what_the_family_adds() {
    using Kind = GgufRules::Tokenizer;
    const Kind kind = gguf_rules(family_).tokenizer;
    const auto id = [&](const char* name, std::uint64_t token) {
      gguf::set_value(keys_, gguf::u32_value(fmt::format("tokenizer.ggml.{}_token_id", name), token));
    };
    if (kind == Kind::code_gemma) {
      id("prefix", 67), id("suffix", 69), id("middle", 68), id("fsep", 70), id("eot", 107);
    }
    const auto space = [&](bool before) {
      gguf::set_value(keys_, gguf::bool_value("tokenizer.ggml.add_space_prefix", before));
    };
    const bool pieces = there("tokenizer.model");
    if ((kind == Kind::gemma || kind == Kind::code_gemma) && pieces) space(false);
    if (kind == Kind::ernie && settings_.is_object() && settings_.contains("add_prefix_space") &&
        settings_.at("add_prefix_space").is_boolean())
      space(settings_.at("add_prefix_space").get<bool>());
    if (kind == Kind::nemotron) id("padding", 0), id("unknown", 1);
  }

  // --- SentencePiece ---------------------------------------------------------------------------------------

  Vocabulary read_pieces() const {
    Vocabulary vocabulary;
    for (std::uint64_t i = 0; i < size_; ++i) vocabulary.texts.push_back(padding_text(i));
    vocabulary.scores.assign(size_, kPaddingScore);
    vocabulary.kinds.assign(size_, static_cast<std::int32_t>(TokenKind::unused));
    const fs::path path = folder_ / "tokenizer.model";
    const auto pieces = parse_sentencepiece_vocab(read_small_file(path, kLargestTokenizer), path);
    for (std::size_t i = 0; i < std::min<std::size_t>(pieces.size(), size_); ++i) {
      const SentencePiece& piece = pieces[i];
      const bool user = piece.type == SentencePiece::Type::user_defined;  // as the converter has it
      vocabulary.texts[i] = piece.text;
      vocabulary.scores[i] = piece.score;
      vocabulary.kinds[i] = static_cast<std::int32_t>(user ? SentencePiece::Type::normal : piece.type);
    }
    const auto set = [&](std::uint64_t id, std::string text, std::int32_t kind) {
      if (id >= size_) return;
      vocabulary.texts[id] = std::move(text);
      vocabulary.scores[id] = kNoScore;
      vocabulary.kinds[id] = kind;
    };
    if (there("added_tokens.json")) {
      const ParsedJson added = read_json(folder_ / "added_tokens.json", kTokenizerJson);
      for (const auto& [text, id] : added.items()) {
        if (id.is_number_unsigned())
          set(id.get<std::uint64_t>(), text, static_cast<std::int32_t>(TokenKind::user_defined));
      }
    }
    for_each_decoder_entry([&](std::uint64_t id, std::string text, bool special) {
      const std::int32_t kind = classify_added(text, special);
      set(id, std::move(text), kind);
    });
    return vocabulary;
  }

  // added_tokens_decoder of tokenizer_config.json: {"32000": {"content": "<|im_end|>", "special": true}}
  using TakeEntry = std::function<void(std::uint64_t id, std::string text, bool special)>;
  void for_each_decoder_entry(const TakeEntry& take) const {
    const auto decoder = settings_.find("added_tokens_decoder");
    if (decoder == settings_.end() || !decoder->is_object()) return;
    for (const auto& [key, token] : decoder->items()) {
      const auto id = parse_u64(key);
      if (!id || !token.is_object() || !token.contains("content") || !token.at("content").is_string())
        continue;
      const auto special = token.find("special");
      take(*id, token.at("content").get<std::string>(), special != token.end() && *special == true);
    }
  }

  // --- tokenizer.json --------------------------------------------------------------------------------------

  struct Added {
    std::string text;
    bool special;
  };

  void read_tokenizer_json() {
    if (there("tokenizer.json")) {
      json_ = read_json(folder_ / "tokenizer.json", kTokenizerJson);
      const auto added = json_.find("added_tokens");
      if (added != json_.end() && added->is_array()) {
        for (const ParsedJson& token : *added)
          take_added(token.value("id", std::uint64_t{0}), token.value("content", ""),
                     token.value("special", false));
      }
    } else if (there("vocab.json") && there("merges.txt")) {  // the same in two files
      json_ = {{"model", {{"type", "BPE"}, {"vocab", read_json(folder_ / "vocab.json", kTokenizerJson)}}}};
      for_each_decoder_entry([&](std::uint64_t id, std::string text, bool special) {
        take_added(id, std::move(text), special);
      });
    } else {
      throw Error::refused(
          "there is no tokenizer.model and no tokenizer.json, without which a GGUF reads no text")
          .in(folder_)
          .remedy("bring the tokenizer's files, or write a GGUF without one by --tokenizer-pre none");
    }
    const auto model = json_.find("model");
    const bool is_bpe = model != json_.end() && model->is_object() && model->value("type", "BPE") == "BPE" &&
                        model->contains("vocab") && model->at("vocab").is_object();
    if (!is_bpe)
      throw Error::refused("is no BPE tokenizer, the only kind offered here").in(folder_ / "tokenizer.json");
    for (const auto& [text, id] : model->at("vocab").items()) {
      if (!id.is_number_unsigned())
        throw Error::input(fmt::format("token \"{}\" has no id", text)).in(folder_ / "tokenizer.json");
      by_id_[id.get<std::uint64_t>()] = text;
    }
    base_size_ = by_id_.size();
    for (const auto& [id, token] : added_) by_id_[id] = token.text;
  }

  void take_added(std::uint64_t id, std::string text, bool special) {
    added_[id] = {std::move(text), special};
  }

  const ParsedJson& model() const { return json_.at("model"); }

  bool falls_back_to_bytes() const {
    const auto decoder = json_.find("decoder");
    return model().value("byte_fallback", false) && decoder != json_.end() && decoder->is_object() &&
           decoder->value("type", "") == "Sequence";
  }

  // Llama 2's tokenizer without its SentencePiece file: pieces, but no scores.
  Vocabulary read_byte_fallback() const {
    Vocabulary vocabulary;
    const auto is_named = [&](const std::string& text) {
      if (text == "<unk>" || text == "<s>" || text == "</s>") return true;
      for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
        const auto token = settings_.find(key);
        if (token == settings_.end()) continue;
        if (*token == text || (token->is_object() && token->value("content", "") == text)) return true;
      }
      return false;
    };
    for (const auto& [id, text] : by_id_) {
      if (id != vocabulary.texts.size())
        throw Error::refused(fmt::format("no token has the id {}", vocabulary.texts.size()))
            .in(folder_ / "tokenizer.json");
      TokenKind kind = id >= base_size_ ? TokenKind::user_defined : TokenKind::normal;
      if (is_named(text)) kind = TokenKind::control;
      if (id < base_size_ && is_byte_token(text)) kind = TokenKind::byte;
      vocabulary.texts.push_back(text);
      vocabulary.scores.push_back(kNoScore);
      vocabulary.kinds.push_back(static_cast<std::int32_t>(kind));
    }
    return vocabulary;
  }

  void write_byte_level() {
    std::string pre = given_pre_.empty() ? pre_tokenizer_name(json_) : std::string(given_pre_);
    const auto own_class = settings_.find("tokenizer_class");
    if (pre.empty() && own_class != settings_.end() &&
        (*own_class == "Qwen2Tokenizer" || *own_class == "Qwen2TokenizerFast"))
      pre = "qwen2";
    if (pre.empty()) {
      throw Error::refused("the pre-tokenizer is none that llama.cpp has a name for, as far as known here")
          .in(folder_ / "tokenizer.json")
          .remedy("name it with --tokenizer-pre");
    }
    if (!by_id_.empty() && by_id_.rbegin()->first >= size_) {
      throw Error::refused(fmt::format("the tokenizer has an id {}, config.json a vocab_size of {}",
                                       by_id_.rbegin()->first, size_))
          .in(folder_);
    }
    Vocabulary vocabulary;
    for (std::uint64_t id = 0; id < size_; ++id) {
      const auto known = by_id_.find(id);
      const auto added = added_.find(id);
      std::string text = known == by_id_.end() ? padding_text(id) : known->second;
      TokenKind kind = known == by_id_.end() ? TokenKind::unused : TokenKind::normal;
      if (added != added_.end()) kind = static_cast<TokenKind>(classify_added(text, added->second.special));
      vocabulary.texts.push_back(std::move(text));
      vocabulary.kinds.push_back(static_cast<std::int32_t>(kind));
    }
    write("gpt2", pre, vocabulary);
  }

  std::vector<std::string> merges() const {
    std::vector<std::string> merges;
    const auto listed = model().find("merges");
    if (listed != model().end() && listed->is_array() && !listed->empty()) {
      for (const ParsedJson& merge : *listed) merges.push_back(merge_text(merge));
    } else if (there("merges.txt")) {
      const std::string text = read_small_file(folder_ / "merges.txt", kLargestTokenizer);
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line(trim(std::string_view(text).substr(begin, end - begin)));
        const bool comment = begin == 0 && line.starts_with('#');
        if (!comment && std::count(line.begin(), line.end(), ' ') == 1) merges.push_back(line);
        begin = end + 1;
      }
    }
    return merges;
  }

  // "h e", or ["h", "e"], where a space within a half becomes what byte-level BPE writes for it.
  std::string merge_text(const ParsedJson& merge) const {
    if (merge.is_string()) return merge.get<std::string>();
    if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string())
      throw Error::input("a merge is no pair of texts").in(folder_ / "tokenizer.json");
    std::string left = merge[0].get<std::string>(), right = merge[1].get<std::string>();
    replace_all(left, " ", "\xc4\xa0");
    replace_all(right, " ", "\xc4\xa0");
    return left + " " + right;
  }

  // -------------------------------------------------------------------------------------------------------------

  void write(std::string_view model, std::string_view pre, const Vocabulary& vocabulary) {
    keys_.push_back(gguf::text_value("tokenizer.ggml.model", std::string(model)));
    keys_.push_back(gguf::text_value("tokenizer.ggml.pre", std::string(pre)));
    keys_.push_back(gguf::texts_value("tokenizer.ggml.tokens", vocabulary.texts));
    if (!vocabulary.scores.empty())
      keys_.push_back(gguf::f32s_value("tokenizer.ggml.scores", vocabulary.scores));
    keys_.push_back(gguf::i32s_value("tokenizer.ggml.token_type", vocabulary.kinds));
    if (model == "gpt2") {
      const auto pairs = merges();
      if (!pairs.empty()) keys_.push_back(gguf::texts_value("tokenizer.ggml.merges", pairs));
    }
    const std::uint64_t checked = model == "llama" ? vocabulary.texts.size() : 0;
    for (gguf::KeyValue& key : special_token_metadata(folder_, checked))
      gguf::set_value(keys_, std::move(key));
  }

  const fs::path& folder_;
  const GgufFamily& family_;
  std::string_view given_pre_;
  std::uint64_t size_;
  ParsedJson settings_ = ParsedJson::object(), json_;
  std::map<std::uint64_t, std::string> by_id_;
  std::map<std::uint64_t, Added> added_;
  std::uint64_t base_size_ = 0;
  std::vector<gguf::KeyValue> keys_;
};

}  // namespace

bool looks_special(std::string_view token) {
  const auto between = [&](std::string_view begin, std::string_view end) {
    return token.starts_with(begin) && token.ends_with(end);
  };
  return token == "<pad>" || token == "<mask>" || token == "<2mass>" || token == "[@BOS@]" ||
         between("<|", "|>") || between("<｜", "｜>") || between("<unused", ">");
}

std::vector<gguf::KeyValue> gguf_tokenizer(const fs::path& folder, const ModelConfig& config,
                                           const GgufFamily& family, std::string_view pre) {
  return Tokenizer(folder, config, family, pre).metadata();
}

}  // namespace assay
