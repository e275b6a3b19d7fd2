// Byte-pair encoding as tokenizer.json (model "BPE") and GGUF ("gpt2") have it, and as tiktoken has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "refimpl/tokenizers/merge.h"
#include "refimpl/tokenizers/subword_model.h"

namespace assay {

struct BpeOptions {
  std::optional<TokenId> unk;     // for characters the vocabulary has not; none: they are dropped
  bool fuse_unk = false;          // a run of unknown characters is one token
  bool byte_fallback = false;     // an unknown character becomes its bytes, <0xE2><0x96>…
  bool ignore_merges = false;     // a word that is in the vocabulary is that token, whatever the merges say
  std::string continuing_prefix;  // "##" before all but the first character of a word
  std::string end_suffix;         // "</w>" after the last
};

using MergePair = std::pair<std::string, std::string>;

// Merges of pieces that the vocabulary lacks are Error::input: the file contradicts itself.
std::unique_ptr<SubwordModel> make_bpe(const Vocabulary& vocabulary, const std::vector<MergePair>& merges,
                                       BpeOptions options);

// tiktoken: the vocabulary holds bytes, and the id of a piece is its rank.
std::unique_ptr<SubwordModel> make_tiktoken_bpe();

}  // namespace assay
