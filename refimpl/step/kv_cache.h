// What one sequence keeps of its past: for each layer a row of keys and a row of values a token (after rope),
// or, for latent attention, one row [latent | rotary key part].
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
  // Layers take memory as they fill, for up to `limit` tokens, which the model's context sets.
  SequenceCache(Ops& ops, const std::vector<CacheWidth>& layers, std::size_t limit);

  std::size_t length() const { return length_; }  // tokens that all layers have
  std::size_t limit() const { return limit_; }
  std::size_t layers() const { return layers_.size(); }

  // Throws Error::input when `count` tokens more exceed the limit.
  void require_room(std::size_t count) const;
  // Puts the rows of a step's tokens after the first length() ones.
  void put(std::size_t layer, const Matrix& keys, const Matrix& values);
  void put(std::size_t layer, const Matrix& latents);
  // The step is over: its tokens count. Or they never were: forget all beyond `length` (speculation).
  void advance(std::size_t count) { length_ += count; }
  void truncate(std::size_t length) { length_ = length < length_ ? length : length_; }

  PagedKvView keys(std::size_t layer) const { return {.base = layers_.at(layer).keys}; }
  PagedKvView values(std::size_t layer) const { return {.base = layers_.at(layer).values}; }

 private:
  struct Layer {
    Matrix keys, values;  // [capacity, width]
  };
  void put_rows(Matrix& kept, const Matrix& rows);

  Ops& ops_;
  std::vector<Layer> layers_;
  std::size_t length_ = 0, limit_ = 0;
};

}  // namespace assay
