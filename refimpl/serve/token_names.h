// Tokens as answers name them: the bytes that each adds to a text.
#pragma once

#include <string>
#include <vector>

#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

class TokenNames {
 public:
  explicit TokenNames(const Tokenizer* tokenizer);  // none: tokens have no names
  std::string bytes(
      TokenId id) const;  // of control tokens the name: "<|im_end|>"; of an id that there is not, nothing
  // As OpenAI's API writes it: "bytes:\xe2\x82" where the bytes are no UTF-8. `as_id`: "token_id:42".
  std::string name(TokenId id, bool as_id) const;

 private:
  const Tokenizer* tokenizer_;
  std::vector<std::string> texts_;  // empty where tokens have no text of their own
};

}  // namespace assay
