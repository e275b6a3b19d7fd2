// Names of a model's tokens, as engines write them: so that what was saved by text alone can be held against ids.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "core/formats/logprobs/saved.h"
#include "kernels/logprobs/token_ids.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay::logprobs {

class TokenNames {
 public:
  explicit TokenNames(const Tokenizer& tokenizer);
  // By the text that a token has alone, the one that it adds behind others, or its piece ("▁the"). None where it is no
  // token's, or several tokens'.
  std::optional<TokenId> id_of(const std::string& name) const;

 private:
  std::unordered_map<std::string, std::optional<TokenId>> ids_;
};

// `saved` with the ids of all its tokens, as `entire` found them, and of the candidates whose name says which they are.
SavedResponses with_ids(const SavedResponses& saved, const std::vector<EntireText>& entire,
                        const TokenNames& names);

// Tokens that are said to end within a character (SavedToken::within_character), and do not: their texts end with a whole one.
// All tokens have ids.
std::size_t not_within_characters(const SavedResponses& saved, const Tokenizer& tokenizer);

}  // namespace assay::logprobs
