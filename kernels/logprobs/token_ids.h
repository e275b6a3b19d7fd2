// Ids of the tokens of saved texts: as they were saved, else by the model's own tokenizer, which has to cut the text into
// the very same pieces.
#pragma once

#include <string>
#include <vector>

#include "core/formats/logprobs/saved.h"
#include "refimpl/models/weights.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay::logprobs {

// All tokens from the beginning of what the model saw; `before` of them stood before the first that was saved.
struct EntireText {
  std::vector<TokenId> ids;
  std::size_t before = 0;
  std::string fault;  // why they are not known
};

// `tokenizer` may be null; `before`: what stands before each text that has something before it, as the user says.
EntireText entire_text(const SavedText& text, const Tokenizer* tokenizer, std::span<const TokenId> before,
                       std::size_t vocabulary);
bool has_ids(const SavedResponses& saved);  // of all tokens
bool needs_tokenizer(const SavedResponses& saved);

}  // namespace assay::logprobs
