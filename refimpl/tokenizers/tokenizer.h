// Text to token ids and back, whatever file the vocabulary comes in.
//
//   const auto tokenizer = load_tokenizer("Qwen3-0.6B");
//   for (const TokenId id : tokenizer->encode("Hello")) use(id, tokenizer->piece(id));
//
// A tokenizer never changes once loaded and may be shared between threads.
//
// Bytes that are no UTF-8 are not lost where the vocabulary knows bytes (byte-level BPE, tiktoken, byte
// fallback): decode(encode(bytes)) gives them back. Other vocabularies have only their unknown token for
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

struct EncodeOptions {
  bool add_special = true;    // BOS, EOS, CLS … where the tokenizer adds them
  bool parse_special = true;  // "<|im_end|>" in the text is the token of that name, not nine characters
};

// A chat template as a model brings it, and where it was found.
struct NamedTemplate {
  std::string name, text, source;
};

// Pieces in, bytes out, token by token. What it gives is final; what the next token may yet change is kept.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  virtual std::string push(TokenId id) = 0;
  virtual std::string finish() = 0;
};

class Tokenizer {
 public:
  Tokenizer(Vocabulary vocabulary, SpecialTokens special)
      : vocabulary_(std::move(vocabulary)), special_(std::move(special)) {}
  virtual ~Tokenizer() = default;

  virtual std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const = 0;
  // skip_special: control tokens come out as nothing.
  virtual std::unique_ptr<TokenDecoder> decoder(bool skip_special) const = 0;
  // The bytes; invalid UTF-8 where the tokens are not of whole characters.
  std::string decode(std::span<const TokenId> ids, bool skip_special = false) const;

  std::size_t vocab_size() const { return vocabulary_.size(); }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  // As the vocabulary writes it ("▁the", "Ġthe"). Error::input for an id that there is not.
  const std::string& piece(TokenId id) const;
  const SpecialTokens& special() const { return special_; }
  std::optional<TokenId> bos() const { return special_.bos; }
  std::optional<TokenId> eos() const { return special_.eos; }
  bool ends_generation(TokenId id) const;

  // "tokenizer.json: BPE, byte level": what the file was taken for.
  const std::string& description() const { return description_; }
  void describe(std::string description) { description_ = std::move(description); }
  // Jinja as the model brings it, often one, called "default"; none when it brings none.
  const std::vector<NamedTemplate>& chat_templates() const { return chat_templates_; }
  void set_chat_templates(std::vector<NamedTemplate> all) { chat_templates_ = std::move(all); }
  const std::string& chat_template() const;  // the default one; empty where there is none
  // What templates can name: "bos_token" is "<s>" …
  const std::vector<std::pair<std::string, std::string>>& template_tokens() const { return template_tokens_; }
  void set_template_tokens(std::vector<std::pair<std::string, std::string>> all) {
    template_tokens_ = std::move(all);
  }

 protected:
  void check_length(std::string_view text) const;  // Error::input beyond kMostTextBytes

 private:
  Vocabulary vocabulary_;
  SpecialTokens special_;
  std::string description_;
  std::vector<NamedTemplate> chat_templates_;
  std::vector<std::pair<std::string, std::string>> template_tokens_;
};

inline constexpr std::size_t kMostTextBytes = 1u << 30;

}  // namespace assay
