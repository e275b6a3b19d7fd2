#include "core/model/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/formats/gguf_write.h"
#include "core/model/gguf_pieces.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::uint64_t kGraniteVocabulary = 49152;  // and SmolLM's: no bos, whatever the file says
// Which Gemma 4's converter always shows, so that what parses a conversation can read them.
constexpr std::array<std::string_view, 7> kGemmaVisible = {
    "<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
    "<|tool_response>", "<tool_response|>", "<|\"|>"};
// What transformers' classes name where tokenizer_config.json does not.
struct ClassToken {
  std::string_view tokenizer_class;
  const char* part;
  std::string_view text;
};
constexpr std::array<ClassToken, 8> kClassTokens = {{{"Llama", "unk_token", "<unk>"},
                                                     {"Llama", "bos_token", "<s>"},
                                                     {"Llama", "eos_token", "</s>"},
                                                     {"Gemma", "bos_token", "<bos>"},
                                                     {"Gemma", "eos_token", "<eos>"},
                                                     {"Gemma", "unk_token", "<unk>"},
                                                     {"Gemma", "pad_token", "<pad>"},
                                                     {"Gemma", "mask_token", "<mask>"}}};
constexpr std::string_view kLagunaTurnEnd = "</assistant>";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

bool is_byte_token(std::string_view text) {
  const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  return text.size() == 6 && text.starts_with("<0x") && is_hex(text[3]) && is_hex(text[4]) && text[5] == '>';
}

class Tokenizer {
 public:
  using Kind = GgufRules::Tokenizer;

  Tokenizer(const fs::path& folder, const ModelConfig& config, const GgufFamily& family, std::string_view pre)
      : folder_(folder),
        family_(family),
        kind_(gguf_rules(family).tokenizer),
        given_pre_(pre),
        size_(describe(config).vocabulary) {}

  std::vector<gguf::KeyValue> metadata() {
    // Without tokens to count, llama.cpp asks a key for the size of the embedding, of every architecture.
    if (given_pre_ == "none")
      return {gguf::text_value("tokenizer.ggml.model", "none"),
              gguf::u32_value(std::string(family_.architecture) + ".vocab_size", size_)};
    settings_ = there("tokenizer_config.json")
                    ? read_json(folder_ / "tokenizer_config.json", kTokenizerFileLimits)
                    : ParsedJson::object();
    if (!settings_.is_object()) throw Error::input("is no JSON object").in(folder_ / "tokenizer_config.json");
    config_ = whole_config();
    const TokenizerFolder files = whole_folder();
    const bool llama = family_.vocabulary == GgufFamily::Vocabulary::llama;
    if (llama && settings_.contains("add_prefix_space") && settings_.at("add_prefix_space").is_boolean())
      keys_.push_back(
          gguf::bool_value("tokenizer.ggml.add_space_prefix", settings_.at("add_prefix_space").get<bool>()));
    rules_ = special_token_rules(kind_, files);
    write_vocabulary();
    add_keys_after(kind_, files, keys_);
    if (llama && size_ == kGraniteVocabulary)
      gguf::set_value(keys_, gguf::bool_value("tokenizer.ggml.add_bos_token", false));
    return std::move(keys_);
  }

 private:
  bool there(const char* name) const {
    std::error_code error;
    return fs::exists(folder_ / name, error);
  }

  TokenizerFolder whole_folder() const { return {folder_, settings_, config_, size_}; }

  // config.json with text_config within it.
  ParsedJson whole_config() const {
    ParsedJson config =
        there("config.json") ? read_json(folder_ / "config.json", kPythonJson) : ParsedJson::object();
    if (config.is_object() && config.contains("text_config") && config.at("text_config").is_object()) {
      const ParsedJson inside = config.at("text_config");
      config.update(inside);
    }
    return config;
  }

  bool pieces_come_first() const {
    // Phi-4 says by its class that it is byte-level, like GPT-2.
    if (kind_ == Kind::phi3) return settings_.value("tokenizer_class", ParsedJson()) != "GPT2Tokenizer";
    return family_.vocabulary != GgufFamily::Vocabulary::byte_level;
  }

  void write_vocabulary() {
    if (kind_ == Kind::plamo && there("tokenizer.jsonl")) return write_plamo();
    if (pieces_come_first() && there("tokenizer.model")) {
      const PiecesOf of = kind_ == Kind::phi3        ? PiecesOf::phi3
                          : kind_ == Kind::internlm2 ? PiecesOf::internlm2
                                                     : PiecesOf::any;
      return write("llama", "default", read_sentencepiece(folder_, settings_, size_, of));
    }
    read_tokenizer_json();
    const bool llama = family_.vocabulary == GgufFamily::Vocabulary::llama || kind_ == Kind::jamba;
    if (kind_ == Kind::gemma4 && falls_back_to_bytes())
      write_gemma4();
    else if (llama && falls_back_to_bytes())
      write("llama", "default", read_byte_fallback());
    else
      write_byte_level();
  }

  void write_gemma4() {
    GgufVocabulary vocabulary = read_byte_fallback();
    for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
      if (std::find(kGemmaVisible.begin(), kGemmaVisible.end(), vocabulary.texts[id]) != kGemmaVisible.end())
        vocabulary.kinds[id] = static_cast<std::int32_t>(TokenKind::user_defined);
    }
    write("gemma4", "", vocabulary);
  }

  void write_plamo() {
    const GgufVocabulary vocabulary = read_plamo_pieces(folder_, size_);
    add_vocabulary("plamo2", "default", vocabulary);
    const auto set = [&](const char* part, std::uint64_t id) {
      keys_.push_back(gguf::u32_value(fmt::format("tokenizer.ggml.{}_token_id", part), id));
    };
    constexpr std::pair<const char*, const char*> kNamed[] = {{"bos_token", "bos"},
                                                              {"eos_token", "eos"},
                                                              {"pad_token", "padding"},
                                                              {"sep_token", "seperator"},
                                                              {"unk_token", "unknown"}};
    for (const auto& [setting, part] : kNamed) {
      const auto text = settings_.find(setting);
      if (text == settings_.end() || !text->is_string()) continue;
      const auto token = std::find(vocabulary.texts.begin(), vocabulary.texts.end(), *text);
      if (token != vocabulary.texts.end())
        set(part, static_cast<std::uint64_t>(token - vocabulary.texts.begin()));
    }
    constexpr std::uint64_t kTurn = 4;  // <|plamo:op|>
    set("eot", kTurn);
    keys_.push_back(gguf::bool_value("tokenizer.ggml.add_space_prefix", false));
    for (gguf::KeyValue& key : special_token_metadata(folder_, {.template_of_file = true})) {
      if (key.key.starts_with("tokenizer.chat_template")) gguf::set_value(keys_, std::move(key));
    }
  }

  // --- tokenizer.json --------------------------------------------------------------------------------------

  struct Added {
    std::string text;
    bool special;
  };

  void read_tokenizer_json() {
    if (there("tokenizer.json")) {
      json_ = read_json(folder_ / "tokenizer.json", kTokenizerFileLimits);
      for_each_added_token(json_, [&](std::uint64_t id, std::string text, bool special) {
        take_added(id, std::move(text), special);
      });
    } else if (there("vocab.json") && there("merges.txt")) {  // the same in two files
      json_ = {
          {"model", {{"type", "BPE"}, {"vocab", read_json(folder_ / "vocab.json", kTokenizerFileLimits)}}}};
      for_each_decoder_entry(settings_, [&](std::uint64_t id, std::string text, bool special) {
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

  // The texts of tokens that tokenizer_config.json gives a part, and those that its class gives one.
  std::set<std::string> special_texts() const {
    std::set<std::string> texts;
    const auto take = [&](const ParsedJson& token) {
      const auto content = token.is_object() ? token.find("content") : token.end();
      if (token.is_string()) texts.insert(token.get<std::string>());
      if (token.is_object() && content != token.end() && content->is_string())
        texts.insert(content->get<std::string>());
    };
    for (const auto& [key, value] : settings_.items()) {
      if (key.ends_with("_token")) take(value);
      if (key != "additional_special_tokens" && key != "extra_special_tokens" &&
          key != "model_specific_special_tokens")
        continue;
      if (value.is_array() || value.is_object()) {
        for (const ParsedJson& token : value) take(token);
      }
    }
    const auto own_class = settings_.find("tokenizer_class");
    const bool named = own_class != settings_.end() && own_class->is_string();
    const std::string tokenizer_class = named                            ? own_class->get<std::string>()
                                        : there("tokenizer_config.json") ? ""
                                                                         : "LlamaTokenizer";
    for (const ClassToken& token : kClassTokens) {
      if (tokenizer_class.starts_with(token.tokenizer_class) && !settings_.contains(token.part))
        texts.emplace(token.text);
    }
    return texts;
  }

  // Llama 2's tokenizer without its SentencePiece file: pieces, but no scores.
  GgufVocabulary read_byte_fallback() const {
    GgufVocabulary vocabulary;
    const std::set<std::string> special = special_texts();
    for (const auto& [id, text] : by_id_) {
      if (id != vocabulary.texts.size())
        throw Error::refused(fmt::format("no token has the id {}", vocabulary.texts.size()))
            .in(folder_ / "tokenizer.json");
      TokenKind kind = id >= base_size_ ? TokenKind::user_defined : TokenKind::normal;
      if (special.contains(text)) kind = TokenKind::control;
      if (id < base_size_ && is_byte_token(text)) kind = TokenKind::byte;
      vocabulary.texts.push_back(text);
      vocabulary.scores.push_back(kNoScore);
      vocabulary.kinds.push_back(static_cast<std::int32_t>(kind));
    }
    return vocabulary;
  }

  void write_byte_level() {
    std::string pre =
        given_pre_.empty() ? pre_tokenizer_name(json_, family_.family) : std::string(given_pre_);
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
    GgufVocabulary vocabulary;
    for (std::uint64_t id = 0; id < size_; ++id) {
      const auto known = by_id_.find(id);
      const auto added = added_.find(id);
      std::string text = known == by_id_.end() ? padding_token(id) : known->second;
      TokenKind kind = known == by_id_.end() ? TokenKind::unused : TokenKind::normal;
      if (added != added_.end())
        kind = static_cast<TokenKind>(classify_added_token(text, added->second.special));
      if (kind_ == Kind::laguna && text == kLagunaTurnEnd) kind = TokenKind::control;
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
      const std::string text = read_small_file(folder_ / "merges.txt", kTokenizerFileLimits.max_bytes);
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

  void add_vocabulary(std::string_view model, std::string_view pre, const GgufVocabulary& vocabulary) {
    keys_.push_back(gguf::text_value("tokenizer.ggml.model", std::string(model)));
    if (!pre.empty()) keys_.push_back(gguf::text_value("tokenizer.ggml.pre", std::string(pre)));
    keys_.push_back(gguf::texts_value("tokenizer.ggml.tokens", vocabulary.texts));
    if (!vocabulary.scores.empty())
      keys_.push_back(gguf::f32s_value("tokenizer.ggml.scores", vocabulary.scores));
    keys_.push_back(gguf::i32s_value("tokenizer.ggml.token_type", vocabulary.kinds));
  }

  void write(std::string_view model, std::string_view pre, const GgufVocabulary& vocabulary) {
    add_vocabulary(model, pre, vocabulary);
    add_keys_between(kind_, whole_folder(), keys_);
    if (model == "gpt2" || model == "gemma4") {
      const auto pairs = merges();
      if (!pairs.empty()) keys_.push_back(gguf::texts_value("tokenizer.ggml.merges", pairs));
    }
    rules_.tokens = model == "llama" ? vocabulary.texts.size() : 0;
    for (gguf::KeyValue& key : special_token_metadata(folder_, rules_))
      gguf::set_value(keys_, std::move(key));
  }

  const fs::path& folder_;
  const GgufFamily& family_;
  Kind kind_;
  std::string_view given_pre_;
  std::uint64_t size_;
  ParsedJson settings_ = ParsedJson::object(), config_, json_;
  SpecialTokenRules rules_;
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
