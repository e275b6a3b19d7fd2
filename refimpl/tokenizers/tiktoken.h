// tiktoken's rank files: a line for each piece, "base64-of-its-bytes rank". How words are cut and which
// special tokens follow the ranks is not in them: it goes by the family.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "core/system/file.h"
#include "refimpl/tokenizers/neighbours.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

// Whether `beginning`, the first bytes of a file, look like such a line.
bool looks_like_ranks(std::string_view beginning);

// `pattern`: a family's name ("cl100k_base", "kimi-k2"), a regular expression of one's own, or empty: the
// family is told from the file's name, the neighbours' model type and the number of ranks.
std::unique_ptr<Tokenizer> read_tiktoken(std::string_view text, std::string_view pattern,
                                         const TokenizerNeighbours& neighbours,
                                         const std::filesystem::path& source);

}  // namespace assay
