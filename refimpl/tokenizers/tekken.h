// Mistral's tekken.json: pieces by rank as tiktoken has them, the regular expression that cuts words, and special tokens,
// whose ids come before those of the pieces. Source: mistral-common 1.13, tokens/tokenizers/tekken.py.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "refimpl/tokenizers/neighbours.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

// By the file's name, as mistral-common tells it: "tekken.json", "tekken_240911.json".
bool is_tekken(const std::filesystem::path& file);

// Throws Error::input for what is no such file. Pieces beyond default_vocab_size are left out, as the model has no rows for them.
std::unique_ptr<Tokenizer> read_tekken(std::string_view text, const TokenizerNeighbours& neighbours,
                                       const std::filesystem::path& source);

}  // namespace assay
