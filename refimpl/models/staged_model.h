// A model whose layers may be computed by several processes, one after the other: between two layers nothing passes
// but the stream, [tokens, hidden].
#pragma once

#include <string>

#include "refimpl/models/model.h"

namespace assay {

class StagedModel : public LanguageModel {
 public:
  virtual std::size_t layer_count() const = 0;
  // What passes between layers beside the stream; empty: nothing, and stages may begin anywhere.
  virtual std::string obstacle() const { return {}; }

  virtual Matrix enter(const Batch& batch, Ops& ops, const Taps& taps) const = 0;  // tokens → stream
  // The stream behind layers [first, end).
  virtual Matrix through(Matrix stream, std::size_t first, std::size_t end, const Batch& batch, Ops& ops,
                         const Taps& taps) const = 0;
  virtual Matrix leave(const Matrix& stream, Ops& ops, const Taps& taps) const = 0;  // → what the head sees

  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override {
    return leave(through(enter(batch, ops, taps), 0, layer_count(), batch, ops, taps), ops, taps);
  }
};

}  // namespace assay
