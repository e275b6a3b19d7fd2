#include "refimpl/engine/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"

namespace assay {

SequenceCache::SequenceCache(Ops& ops, std::vector<CacheWidth> layers, std::size_t limit)
    : ops_(ops), limit_(limit) {
  for (const CacheWidth& width : layers) layers_.push_back({width, {}, {}});
}

void SequenceCache::reserve(std::size_t count) {
  if (length_ > limit_ || count > limit_ - length_)
    throw Error::input(fmt::format("{} tokens exceed the context of {}", length_ + count, limit_))
        .remedy("shorten the prompt or lower -n");
  if (length_ + count > capacity_) grow(std::min(limit_, std::max(length_ + count, 2 * capacity_)));
}

void SequenceCache::grow(std::size_t capacity) {
  const auto larger = [&](const Matrix& rows, std::size_t width) {
    const Matrix grown = ops_.allocate(capacity, width);
    if (length_ != 0) ops_.store({.base = grown}, 0, rows.row_range(0, length_));
    return grown;
  };
  for (Layer& layer : layers_) {
    layer.keys = larger(layer.keys, layer.width.key_width);
    if (layer.width.value_width != 0) layer.values = larger(layer.values, layer.width.value_width);
  }
  capacity_ = capacity;
}

void SequenceCache::put(std::size_t layer, const Matrix& keys, const Matrix& values) {
  put(layer, keys);
  ops_.store({.base = layers_.at(layer).values}, length_, values);
}

void SequenceCache::put(std::size_t layer, const Matrix& latents) {
  ops_.store({.base = layers_.at(layer).keys}, length_, latents);
}

void SequenceCache::advance(std::size_t count) {
  length_ += count;
}

void SequenceCache::truncate(std::size_t length) {
  length_ = std::min(length_, length);
}

}  // namespace assay
