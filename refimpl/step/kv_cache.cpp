#include "refimpl/step/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"

namespace assay {

SequenceCache::SequenceCache(Ops& ops, const std::vector<CacheWidth>& layers, std::size_t limit)
    : ops_(ops), limit_(limit) {
  for (const CacheWidth& width : layers)
    layers_.push_back({ops.allocate(0, width.key_width), ops.allocate(0, width.value_width)});
}

void SequenceCache::require_room(std::size_t count) const {
  if (length_ <= limit_ && count <= limit_ - length_) return;
  throw Error::input(fmt::format("{} tokens exceed the model's context of {}", length_ + count, limit_))
      .remedy("shorten the prompt or lower -n");
}

void SequenceCache::put_rows(Matrix& kept, const Matrix& rows) {
  require_room(rows.rows());
  const std::size_t needed = length_ + rows.rows();
  if (kept.rows() < needed) {
    const Matrix larger = ops_.allocate(std::min(limit_, std::max(needed, 2 * kept.rows())), kept.columns());
    if (length_ != 0) ops_.store({.base = larger}, 0, kept.row_range(0, length_));
    kept = larger;
  }
  ops_.store({.base = kept}, length_, rows);
}

void SequenceCache::put(std::size_t layer, const Matrix& keys, const Matrix& values) {
  put_rows(layers_.at(layer).keys, keys);
  put_rows(layers_.at(layer).values, values);
}

void SequenceCache::put(std::size_t layer, const Matrix& latents) {
  put_rows(layers_.at(layer).keys, latents);
}

}  // namespace assay
