// The text that each token of a vocabulary adds: for a grammar, which looks at tokens before they are chosen, and for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

// The text that one token adds behind others ("▁the": " the"); control tokens are empty, or as they are written.
class TextBehindOthers {
 public:
  explicit TextBehindOthers(const Tokenizer& tokenizer, bool skip_special = false);
  std::string operator()(TokenId id) const;                              // of one that it knows
  bool knows(TokenId id) const { return id < tokenizer_.vocab_size(); }  // embeddings may have more rows

 private:
  const Tokenizer& tokenizer_;
  std::optional<TokenId> before_;
  bool skip_special_;
};

struct TextOfTokens {
  std::vector<std::string> first,
      later;  // at a text's beginning, and after another token; control tokens: empty
};

// Throws Error::input where a text is not the sum of its tokens' texts (decoders that tidy spaces, or that look at what
// comes next).
TextOfTokens text_of_tokens(const Tokenizer& tokenizer);

}  // namespace assay
