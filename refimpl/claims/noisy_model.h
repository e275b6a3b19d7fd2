// A model that is another one, except that some of its guesses are spoilt: as a draft of that one right often, not always.
#pragma once

#include "refimpl/models/model.h"

namespace assay {

class NoisyModel : public LanguageModel {
 public:
  explicit NoisyModel(const LanguageModel& model) : model_(model) {}
  std::size_t vocabulary() const override { return model_.vocabulary(); }
  std::size_t context() const override { return model_.context(); }
  std::vector<CacheWidth> cache_widths() const override { return model_.cache_widths(); }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return model_.cache_serves(length, other);
  }
  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override {
    return model_.hidden(batch, ops, taps);
  }
  // Of about every third row the logits move on by a token.
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override;

 private:
  const LanguageModel& model_;
};

}  // namespace assay
