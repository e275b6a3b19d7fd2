// What one sequence keeps of its past: for each layer a row of keys and a row of values a token (after rope),
// or, for latent attention, one row [latent | turned key part].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "refimpl/ops/interface.h"

namespace assay {

// Elements a token keeps in one layer. Latent attention: value_width 0.
struct CacheWidth {
  std::size_t key_width = 0, value_width = 0;
};

class SequenceCache {
 public:
  // Grows as it fills, up to `limit` tokens, which the model's context sets.
  SequenceCache(Ops& ops, std::vector<CacheWidth> layers, std::size_t limit);

  std::size_t length() const { return length_; }  // tokens that all layers have
  std::size_t limit() const { return limit_; }
  std::size_t layers() const { return layers_.size(); }

  // Makes room for `count` tokens more. Throws Error::input when they exceed the limit.
  void reserve(std::size_t count);
  // Puts the rows of a step's tokens after the first length() ones.
  void put(std::size_t layer, const Matrix& keys, const Matrix& values);
  void put(std::size_t layer, const Matrix& latents);
  // The step is over: its tokens count. Or they never were: forget all beyond `length` (speculation).
  void advance(std::size_t count);
  void truncate(std::size_t length);

  CacheRows keys(std::size_t layer) const { return {.base = layers_.at(layer).keys}; }
  CacheRows values(std::size_t layer) const { return {.base = layers_.at(layer).values}; }

 private:
  struct Layer {
    CacheWidth width;
    Matrix keys, values;  // [capacity, width]
  };
  void grow(std::size_t capacity);

  Ops& ops_;
  std::vector<Layer> layers_;
  std::size_t length_ = 0, capacity_ = 0, limit_ = 0;
};

}  // namespace assay
