// Tokenizing as SentencePiece does, and as llama.cpp does with the same vocabularies.
#pragma once

#include <memory>
#include <vector>

#include "refimpl/tokenizers/added_tokens.h"
#include "refimpl/tokenizers/sentencepiece_model.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

struct SentencePieceOptions {
  // Tokens found in the text before the model sees it. User-defined pieces need not be among them.
  std::vector<AddedToken> added;
  bool add_bos = false, add_eos = false;
  // llama.cpp puts the space that begins a text also after a special token, and any piece of the vocabulary
  // may come out of a merge; SentencePiece merges only normal and user-defined ones.
  bool as_llama_cpp = false;
  // The model's pieces and the tokens beside them, which are nothing to the model; empty: its pieces are all there is.
  Vocabulary vocabulary = {};
};

std::unique_ptr<Tokenizer> make_sentencepiece(SentencePieceModel model, SentencePieceOptions options);

}  // namespace assay
