#include "refimpl/step/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "refimpl/step/block_storage.h"

namespace assay {

SequenceCache::SequenceCache(Ops& ops, const std::vector<CacheWidth>& layers, std::size_t limit)
    : ops_(ops), limit_(limit) {
  for (const CacheWidth& width : layers) {
    layers_.push_back({ops.allocate(0, width.key_width), ops.allocate(0, width.value_width), {}});
    for (const StateShape& shape : width.states) layers_.back().states.push_back({.shape = shape});
  }
}

SequenceCache::SequenceCache(Ops& ops, const BlockStorage& storage,
                             const std::vector<std::vector<std::int32_t>>& tables, std::size_t limit,
                             std::size_t page_rows)
    : ops_(ops),
      limit_(limit),
      page_rows_(page_rows == 0 ? storage.block_tokens() : page_rows),
      storage_(&storage),
      tables_(&tables) {
  const std::vector<CacheWidth>& widths = storage.widths();
  for (std::size_t i = 0; i < widths.size(); ++i) {
    layers_.push_back({storage.keys(i), storage.values(i), {}});
    for (const StateShape& shape : widths[i].states) layers_.back().states.push_back({.shape = shape});
  }
}

PagedKvView SequenceCache::view(std::size_t layer, const Matrix& rows) const {
  if (storage_ == nullptr) return {.base = rows};
  return {.base = rows, .pages = tables_->at(storage_->group_of(layer)).data(), .page_rows = page_rows_};
}

void SequenceCache::require_room(std::size_t count) const {
  if (length_ <= limit_ && count <= limit_ - length_) return;
  throw Error::input(fmt::format("{} tokens exceed the model's context of {}", length_ + count, limit_))
      .remedy("shorten the prompt or lower -n");
}

void SequenceCache::put_rows(std::size_t layer, Matrix& kept, const Matrix& rows) {
  require_room(rows.rows());
  const std::size_t needed = length_ + rows.rows();
  if (storage_ != nullptr) {
    if (needed > tables_->at(storage_->group_of(layer)).size() * page_rows_)
      throw Error::internal(fmt::format("no blocks for {} tokens of a cache", needed));
    return ops_.store(view(layer, kept), length_, rows);
  }
  if (kept.rows() < needed) {
    const Matrix larger = ops_.allocate(std::min(limit_, std::max(needed, 2 * kept.rows())), kept.columns());
    if (length_ != 0) ops_.store({.base = larger}, 0, kept.row_range(0, length_));
    kept = larger;
  }
  ops_.store({.base = kept}, length_, rows);
}

void SequenceCache::put(std::size_t layer, const Matrix& keys, const Matrix& values) {
  put_rows(layer, layers_.at(layer).keys, keys);
  put_rows(layer, layers_.at(layer).values, values);
}

void SequenceCache::put(std::size_t layer, const Matrix& latents) {
  put_rows(layer, layers_.at(layer).keys, latents);
}

SequenceState SequenceCache::state(std::size_t layer, std::size_t part, std::size_t first,
                                   std::size_t count) {
  State& s = layers_.at(layer).states.at(part);
  if (length_ < s.first_kept() || length_ > s.length)
    throw Error::internal(
        fmt::format("the state of layer {} is not that of a text of {} tokens", layer, length_));
  s.step = {.first = first, .tokens = count, .before = s.kept[length_ - s.first_kept()], .after = {}};
  const std::size_t behind = count > kTakenBack ? 1 : count;
  for (std::size_t i = 0; i < behind; ++i)
    s.step.after.push_back(ops_.allocate(s.shape.rows, s.shape.columns));
  return s.step;
}

void SequenceCache::advance(std::size_t count) {
  for (Layer& layer : layers_) {
    for (State& s : layer.states) {
      if (count == 0 || s.step.tokens == 0) continue;  // a layer that this step did not pass
      const bool every = s.step.after.size() == s.step.tokens;
      if (every ? count > s.step.tokens : count != s.step.tokens)
        throw Error::internal(fmt::format("{} tokens of a step of {} count", count, s.step.tokens));
      s.kept.clear();
      if (every) s.kept.push_back(s.step.before);
      s.step.after.resize(every ? count : 1);
      s.kept.insert(s.kept.end(), s.step.after.begin(), s.step.after.end());
      s.length = length_ + count;
      s.step = {};
    }
  }
  length_ += count;
}

SequenceCache::States SequenceCache::states() const {
  States states;
  for (const Layer& layer : layers_) {
    for (const State& s : layer.states) {
      if (length_ < s.first_kept() || length_ > s.length)
        throw Error::internal(fmt::format("a state behind {} tokens is not kept", length_));
      states.push_back(s.kept[length_ - s.first_kept()]);
    }
  }
  return states;
}

void SequenceCache::resume(std::size_t length, const States& states) {
  std::size_t next = 0;
  for (Layer& layer : layers_) {
    for (State& s : layer.states)
      s = {.shape = s.shape, .kept = {states.at(next++)}, .length = length, .step = {}};
  }
  length_ = length;
}

std::vector<std::int32_t> row_table(const PagedKvView& rows, std::size_t first, std::size_t count) {
  std::vector<std::int32_t> table(count);
  for (std::size_t i = 0; i < count; ++i) table[i] = static_cast<std::int32_t>(rows.row(first + i));
  return table;
}

void SequenceCache::truncate(std::size_t length) {
  if (length >= length_) return;
  for (const Layer& layer : layers_) {
    for (const State& s : layer.states) {
      if (length != 0 && s.length > length && length < s.first_kept())
        throw Error::input(
            fmt::format("a recurrent state of {} tokens cannot be taken back to {}: it is kept back to {}",
                        s.length, length, s.first_kept()));
    }
  }
  for (Layer& layer : layers_) {
    for (State& s : layer.states) {
      s.step = {};
      if (length == 0)
        s.kept = {Matrix()};
      else if (s.length > length)
        s.kept.resize(length + 1 - s.first_kept());
      s.length = std::min(s.length, length);
    }
  }
  length_ = length;
}

}  // namespace assay
