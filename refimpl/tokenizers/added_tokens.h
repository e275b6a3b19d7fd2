// Tokens found in the text before any model sees it: <|im_end|>, runs of spaces, image markers.
//
// As the tokenizers crate finds them: leftmost, and of those the longest; with the white space around them
// where the token says so (lstrip, rstrip); only between non-word characters where it says that
// (single_word).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "refimpl/tokenizers/byte_trie.h"
#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false, single_word = false, lstrip = false, rstrip = false, normalized = false;
};

struct TextPiece {
  std::string_view text;
  std::optional<TokenId> token;  // none: ordinary text
};

class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  // Error::input for a token longer than any in use: matching would take quadratic time.
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  // `text` cut at the tokens; nothing empty. Without `parse_special`, special ones are ordinary text.
  std::vector<TextPiece> split(std::string_view text, bool parse_special) const;

 private:
  std::vector<AddedToken> tokens_;
  ByteTrie trie_;  // content -> place in tokens_
};

}  // namespace assay
