// The text that each token of a vocabulary adds, for what looks at tokens before they are chosen: a grammar.
#pragma once

#include <string>
#include <vector>

#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

struct TextOfTokens {
  std::vector<std::string> first,
      later;  // at a text's beginning, and after another token; control tokens: empty
};

// Throws Error::input where a text is not the sum of its tokens' texts (decoders that tidy spaces, or that look at what
// comes next).
TextOfTokens text_of_tokens(const Tokenizer& tokenizer);

}  // namespace assay
