// Word lists: WordPiece (the longest piece that fits, from left to right) and WordLevel (the whole word).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "refimpl/tokenizers/subword_model.h"

namespace assay {

struct WordPieceOptions {
  TokenId unk = 0;                // for a word that cannot be spelled
  std::string first_prefix = {};  // before a word's first piece: "▁" in GGUF
  std::string continuing_prefix = "##";
  std::size_t most_characters = 100;  // longer words are unknown
};
std::unique_ptr<SubwordModel> make_wordpiece(WordPieceOptions options);

std::unique_ptr<SubwordModel> make_word_level(std::optional<TokenId> unk);

}  // namespace assay
