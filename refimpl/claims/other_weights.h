// A model of the same shape with other weights: the rows of its embedding stand elsewhere.
#pragma once

#include <vector>

#include "refimpl/models/model.h"

namespace assay {

class OtherWeights : public LanguageModel {
 public:
  explicit OtherWeights(const LanguageModel& model) : model_(model) {}

  std::size_t vocabulary() const override { return model_.vocabulary(); }
  std::size_t context() const override { return model_.context(); }
  std::vector<CacheWidth> cache_widths() const override { return model_.cache_widths(); }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return model_.cache_serves(length, other);
  }
  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override {
    Batch turned = batch;
    for (TokenId& id : turned.tokens) id = static_cast<TokenId>((id + 1) % model_.vocabulary());
    return model_.hidden(turned, ops, taps);
  }
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    return model_.logits(hidden, ops, taps);
  }

 private:
  const LanguageModel& model_;
};

}  // namespace assay
