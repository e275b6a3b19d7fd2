// Hugging Face's tokenizer.json, and the older pair of vocab.json and merges.txt.
// (Format: the serde structures of the tokenizers crate; behaviour: that crate, version 0.2x.)
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "core/system/file.h"
#include "refimpl/tokenizers/neighbours.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

// `text`: the file's contents; `source` names it in errors.
std::unique_ptr<Tokenizer> read_hf_tokenizer(std::string_view text, const TokenizerNeighbours& neighbours,
                                             const std::filesystem::path& source);

// `merges`: one "left right" a line. How words are cut follows from the neighbours' tokenizer class.
std::unique_ptr<Tokenizer> read_vocab_and_merges(std::string_view vocab, std::string_view merges,
                                                 const TokenizerNeighbours& neighbours,
                                                 const std::filesystem::path& source);

}  // namespace assay
