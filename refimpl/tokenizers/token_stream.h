// Text as tokens arrive, always valid UTF-8: a character that is not whole yet waits for its rest.
//
//   TokenStream stream(*tokenizer);
//   while (...) show(stream.push(next_token()));
//   show(stream.finish());
//
// Put together, what it gives is decode() of all tokens with U+FFFD for what is no UTF-8.
#pragma once

#include <memory>
#include <string>

#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

class TokenStream {
 public:
  // Refers to `tokenizer`, which must outlive it.
  explicit TokenStream(const Tokenizer& tokenizer, bool skip_special = true)
      : decoder_(tokenizer.decoder(skip_special)) {}

  std::string push(TokenId id) { return take(decoder_->push(id), false); }
  std::string finish() { return take(decoder_->finish(), true); }

 private:
  std::string take(std::string_view bytes, bool last);

  std::unique_ptr<TokenDecoder> decoder_;
  std::string held_;  // the beginning of a character
};

}  // namespace assay
