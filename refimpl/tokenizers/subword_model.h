// What makes tokens of one word, after normalization and splitting: BPE, Unigram, WordPiece, a word list.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

class SubwordModel {
 public:
  // The scratch memory and word cache of one text. Not to be shared between threads.
  class Session {
   public:
    virtual ~Session() = default;
    virtual void encode(std::string_view word, std::vector<TokenId>& out) = 0;
  };

  virtual ~SubwordModel() = default;
  // The session refers to the model and to `vocabulary`, which must outlive it, and looks its own pieces up there.
  virtual std::unique_ptr<Session> session(const Vocabulary& vocabulary) const = 0;
};

}  // namespace assay
