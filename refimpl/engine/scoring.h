// A text read for what the model says of it: a chunk of tokens at a time, and of each chunk the logits of as
// many positions at once as the caller wants to have in memory. A row of logits is as wide as the vocabulary:
// those of a whole text may take more room than the model.
//
//   TextScorer scorer(model, ops, tokens);
//   while (scorer.read()) {
//     for (std::size_t p = scorer.first(); p < scorer.end(); ++p) use(scorer.logits(p, 1));
//   }
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "refimpl/engine/sequence.h"
#include "refimpl/step/taps.h"

namespace assay {

class TextScorer {
 public:
  // Throws Error::input where the text is empty, longer than the context, or holds an id beyond the
  // vocabulary.
  TextScorer(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens, const Taps& taps = {},
             std::size_t chunk = 512, const std::shared_ptr<const CacheMethod>& method = {});

  // Reads the next chunk. False: the text is over, or the user wants no more (interrupted()). Where rotary
  // frequencies follow the length, a chunk may begin anew at position 0.
  bool read();
  std::size_t first() const { return first_; }
  std::size_t end() const { return first_ + hidden_.rows(); }
  // Of `count` positions of the chunk: [count, vocabulary].
  std::vector<double> logits(std::size_t position, std::size_t count);

 private:
  const LanguageModel& model_;
  Ops& ops_;
  Taps taps_;
  std::size_t chunk_, first_ = 0;
  Sequence sequence_;
  Matrix hidden_;  // [tokens of the chunk, hidden]
};

// Rows of logits that fit into so many bytes; into 64 MiB: enough of them to be computed at the pace of many.
std::size_t rows_at_once(std::size_t vocabulary, std::size_t bytes = 64 << 20);

}  // namespace assay
