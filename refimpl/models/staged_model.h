// A model whose layers may be computed by several processes, one after the other.
#pragma once

#include <string>
#include <vector>

#include "refimpl/models/model.h"

namespace assay {

// What passes between two layers. Beside the stream there may be what several layers look at: inputs that all layers
// take a part of, earlier states of the stream, keys that a layer chose; what lies there the model knows.
struct StageStream {
  Matrix x;                    // [tokens, hidden]; of several streams, side by side
  std::vector<Matrix> beside;  // [tokens, …] each
};

class StagedModel : public LanguageModel {
 public:
  virtual std::size_t layer_count() const = 0;
  // The layer whose keys and values this one attends to.
  virtual std::size_t cache_of(std::size_t layer) const { return layer; }

  virtual StageStream enter(const Batch& batch, Ops& ops, const Taps& taps) const = 0;
  // The stream behind layers [first, end).
  virtual StageStream through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch,
                              Ops& ops, const Taps& taps) const = 0;
  // What the head sees.
  virtual Matrix leave(const StageStream& stream, Ops& ops, const Taps& taps) const = 0;

  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override {
    return leave(through(enter(batch, ops, taps), 0, layer_count(), batch, ops, taps), ops, taps);
  }
};

}  // namespace assay
