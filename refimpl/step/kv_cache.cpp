#include "refimpl/step/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "refimpl/step/block_storage.h"

namespace assay {

SequenceCache::SequenceCache(Ops& ops, const std::vector<CacheWidth>& layers, std::size_t limit)
    : ops_(ops), widths_(layers), limit_(limit) {
  for (const CacheWidth& width : layers) {
    layers_.push_back({ops.allocate(0, width.key_width), ops.allocate(0, width.value_width), {}});
    for (const StateShape& shape : width.states) layers_.back().states.push_back({.shape = shape});
  }
}

SequenceCache::SequenceCache(Ops& ops, const BlockStorage& storage,
                             const std::vector<std::vector<std::int32_t>>& tables, std::size_t limit,
                             std::size_t page_rows)
    : ops_(ops),
      widths_(storage.widths()),
      limit_(limit),
      page_rows_(page_rows == 0 ? storage.block_tokens() : page_rows),
      storage_(&storage),
      tables_(&tables) {
  for (std::size_t i = 0; i < widths_.size(); ++i) {
    layers_.push_back({storage.keys(i), storage.values(i), {}});
    for (const StateShape& shape : widths_[i].states) layers_.back().states.push_back({.shape = shape});
  }
}

namespace {

// Rows of the tokens first … of a table; of blocks that serve another sequence by now nowhere.
std::vector<std::size_t> places_in(const std::vector<std::int32_t>& table, std::size_t first,
                                   std::size_t count, std::size_t page_rows) {
  std::vector<std::size_t> places(count, StoredRows::kNowhere);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t page = table[(first + i) / page_rows];
    if (page >= 0) places[i] = static_cast<std::size_t>(page) * page_rows + (first + i) % page_rows;
  }
  return places;
}

}  // namespace

// `rows`: the layer's keys, or its values.
PagedKvView SequenceCache::view(std::size_t layer, const Matrix& rows) const {
  if (storage_ == nullptr) return {.base = rows};
  storage_->await(layer);
  const StoredRows& stored =
      &rows == &layers_.at(layer).keys ? storage_->key_rows(layer) : storage_->value_rows(layer);
  const std::vector<std::int32_t>& table = tables_->at(storage_->group_of(layer));
  if (stored.coded()) return {.base = stored.get(places_in(table, 0, table.size() * page_rows_, page_rows_))};
  return {.base = rows, .pages = tables_->at(storage_->group_of(layer)).data(), .page_rows = page_rows_};
}

void SequenceCache::require_room(std::size_t count) const {
  const std::size_t held = renumbers() ? next_place() : length_;
  if (held <= limit_ && count <= limit_ - held) return;
  throw Error::input(fmt::format("{} tokens exceed the model's context of {}", held + count, limit_))
      .remedy("shorten the prompt or lower -n");
}

void SequenceCache::keep_by(std::shared_ptr<const CacheMethod> method, std::size_t prompt) {
  if (length_ != 0) throw Error::internal("a cache with rows in it takes no method");
  method_ = std::move(method);
  prompt_ = prompt;
  make_policies();
}

void SequenceCache::make_policies() {
  if (!method_) return;
  const auto has_rows = [](const CacheWidth& width) { return width.key_width != 0 && !width.drafts; };
  const auto layers = static_cast<std::size_t>(std::count_if(widths_.begin(), widths_.end(), has_rows));
  for (std::size_t i = 0, index = 0; i < layers_.size(); ++i) {
    if (has_rows(widths_[i])) layers_[i].policy = method_->layer({widths_[i], index++, layers}, prompt_);
  }
}

std::size_t SequenceCache::rows(std::size_t layer) const {
  const LayerPolicy* p = policy(layer);
  return p == nullptr || storage_ != nullptr ? length_ : p->rows();
}

LayerPolicy* SequenceCache::policy(std::size_t layer) const {
  return layers_.at(layer).policy.get();
}

std::size_t SequenceCache::next_place() const {
  if (!method_ || storage_ != nullptr) return length_;
  std::size_t held = length_;
  for (const Layer& layer : layers_) {
    if (layer.policy) held = std::min(held, layer.policy->rows());
  }
  return method_->place(length_, held);
}

void SequenceCache::put_rows(std::size_t layer, Matrix& kept, const Matrix& rows) {
  require_room(rows.rows());
  const std::size_t held = this->rows(layer), needed = held + rows.rows();
  if (storage_ != nullptr) {
    if (needed > tables_->at(storage_->group_of(layer)).size() * page_rows_)
      throw Error::internal(fmt::format("no blocks for {} tokens of a cache", needed));
    storage_->await(layer);
    const StoredRows& stored =
        &kept == &layers_.at(layer).keys ? storage_->key_rows(layer) : storage_->value_rows(layer);
    const std::vector<std::int32_t>& table = tables_->at(storage_->group_of(layer));
    if (stored.coded()) return stored.put(places_in(table, held, rows.rows(), page_rows_), rows);
    return ops_.store(view(layer, kept), held, rows);
  }
  if (kept.rows() < needed) {
    const Matrix larger = ops_.allocate(std::min(limit_, std::max(needed, 2 * kept.rows())), kept.columns());
    if (held != 0) ops_.store({.base = larger}, 0, kept.row_range(0, held));
    kept = larger;
  }
  ops_.store({.base = kept}, held, rows);
}

void SequenceCache::put(std::size_t layer, const Matrix& keys, const Matrix& values) {
  Layer& to = layers_.at(layer);
  if (!to.policy) {
    put_rows(layer, to.keys, keys);
    if (!values.empty()) put_rows(layer, to.values, values);
    return;
  }
  Matrix as_read = keys, values_as_read = values;
  to.policy->write(as_read, values_as_read, ops_);
  to.written = true;
  put_rows(layer, to.keys, as_read);
  if (!values.empty()) put_rows(layer, to.values, values_as_read);
}

void SequenceCache::put(std::size_t layer, const Matrix& latents) {
  put(layer, latents, Matrix());
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
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    if (layer.policy && layer.written && count != 0 && storage_ == nullptr)
      layer.policy->settle({ops_, keys(i), values(i)}, count);
    layer.written = false;
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
  if (method_ && length != 0 && storage_ == nullptr)
    throw Error::input(
        fmt::format("a cache kept by {} cannot be taken back: what it threw away is gone", method_->name()));
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
  make_policies();
}

}  // namespace assay
