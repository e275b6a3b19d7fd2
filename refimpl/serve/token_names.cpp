#include "refimpl/serve/token_names.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/tokenizers/token_text.h"

namespace assay {

TokenNames::TokenNames(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {
  if (tokenizer == nullptr) return;
  try {
    texts_ = text_of_tokens(*tokenizer).later;
  } catch (const Error&) {
    // Their decoder tidies what stands between tokens: they are named as the vocabulary writes them.
  }
}

std::string TokenNames::bytes(TokenId id) const {
  if (id < texts_.size() && !texts_[id].empty()) return texts_[id];
  return tokenizer_ != nullptr && id < tokenizer_->vocab_size() ? tokenizer_->piece(id) : "";
}

std::string TokenNames::name(TokenId id, bool as_id) const {
  if (as_id || tokenizer_ == nullptr || id >= tokenizer_->vocab_size()) return fmt::format("token_id:{}", id);
  std::string own = bytes(id);
  if (is_valid_utf8(own)) return own;
  std::string escaped = "bytes:";
  for (const char c : own) escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return escaped;
}

}  // namespace assay
