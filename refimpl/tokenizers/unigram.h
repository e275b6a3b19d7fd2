// The Unigram model: of all ways to cut a text into pieces, the one whose scores sum highest (Kudo,
// arXiv:1804.10959; Viterbi).
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "refimpl/tokenizers/byte_trie.h"
#include "refimpl/tokenizers/subword_model.h"

namespace assay {

struct UnigramOptions {
  std::optional<TokenId> unk;
  bool byte_fallback = false;  // unknown characters become <0xNN>…
  // SentencePiece adds scores as floats and knows user-defined pieces; the tokenizers crate uses doubles and
  // takes every piece for a normal one. Near ties fall differently.
  bool sentencepiece = false;
};

// scores[id] for every piece of `vocabulary`.
std::unique_ptr<SubwordModel> make_unigram(const Vocabulary& vocabulary, std::vector<double> scores,
                                           UnigramOptions options);

}  // namespace assay
