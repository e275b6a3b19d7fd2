// A text read in steps of the caller's, its cache kept by a method: what is said behind each step.
//
//   SteppedText text(model, ops, method, prompt.size());
//   logits = text.read(prompt);  logits = text.read({&next, 1}); …
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "refimpl/models/model.h"

namespace assay {

class SteppedText {
 public:
  // `method` may be null: in full. `prompt`: tokens that come before the first that is made.
  SteppedText(const LanguageModel& model, Ops& ops, const std::shared_ptr<const CacheMethod>& method,
              std::size_t prompt);
  // [vocabulary] behind the last of the tokens. Throws Error::input beyond the context.
  std::vector<double> read(std::span<const TokenId> tokens);
  const SequenceCache& cache() const { return cache_; }

 private:
  const LanguageModel& model_;
  Ops& ops_;
  SequenceCache cache_;
};

}  // namespace assay
