// How byte-level vocabularies cut a text into words, by the names that GGUF files (tokenizer.ggml.pre),
// tiktoken and model types give to it.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "refimpl/tokenizers/pre_tokenizer.h"

namespace assay {

struct WordPattern {
  std::string_view name;
  std::vector<std::string_view> regexes;  // applied one after the other; matches and the rest are words
  bool ignore_merges = false;             // a word that the vocabulary has is one token
  bool add_bos = false;                   // unless the file says otherwise
  bool nfc = false;                       // the text is brought into normal form C first
};

// nullptr for a name that nobody told us.
const WordPattern* find_pattern(std::string_view name);
// Of vocab.json + merges.txt, by "Qwen2Tokenizer" or "qwen3"; GPT-2's where neither says more.
const WordPattern& pattern_of_class(std::string_view tokenizer_class, std::string_view model_type);
// GGUF's names for vocabularies whose spaces are marks and whose words are lines: BPE, but not of bytes
// (Gemma 4's).
bool is_marked_pattern(std::string_view name);
// Every name, for an error's remedy.
std::vector<std::string_view> pattern_names();

// Cut as `pattern` says, then written in GPT-2's alphabet.
std::unique_ptr<PreTokenizer> make_byte_level(const WordPattern& pattern, bool add_prefix_space);
// Cut only.
std::unique_ptr<PreTokenizer> make_words(const WordPattern& pattern);

}  // namespace assay
