#include "refimpl/engine/block_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/system/error.h"

namespace assay {

BlockPool::BlockPool(std::size_t blocks)
    : holders_(blocks),
      next_(blocks, kNone),
      previous_(blocks, kNone),
      contents_(blocks),
      same_(blocks, kNone) {
  for (std::size_t b = 0; b < blocks; ++b) append(static_cast<BlockId>(b));
}

std::vector<BlockId> BlockPool::queue() const {
  std::vector<BlockId> order;
  for (BlockId b = first_; b != kNone; b = next_[static_cast<std::size_t>(b)]) order.push_back(b);
  return order;
}

std::optional<BlockId> BlockPool::next() const {
  if (first_ == kNone) return std::nullopt;
  return first_;
}

void BlockPool::append(BlockId block) {
  const auto b = static_cast<std::size_t>(block);
  previous_[b] = last_;
  next_[b] = kNone;
  (last_ == kNone ? first_ : next_[static_cast<std::size_t>(last_)]) = block;
  last_ = block;
  ++free_;
}

void BlockPool::remove(BlockId block) {
  const auto b = static_cast<std::size_t>(block);
  const BlockId before = previous_[b], after = next_[b];
  (before == kNone ? first_ : next_[static_cast<std::size_t>(before)]) = after;
  (after == kNone ? last_ : previous_[static_cast<std::size_t>(after)]) = before;
  --free_;
}

std::optional<BlockId> BlockPool::take() {
  if (first_ == kNone) return std::nullopt;
  const BlockId block = first_;
  remove(block);
  if (contents_[static_cast<std::size_t>(block)]) ++evictions_;
  forget(block);
  holders_[static_cast<std::size_t>(block)] = 1;
  return block;
}

void BlockPool::hold(BlockId block) {
  if (holders_.at(static_cast<std::size_t>(block))++ == 0) remove(block);
}

void BlockPool::release(BlockId block) {
  std::size_t& holders = holders_.at(static_cast<std::size_t>(block));
  if (holders == 0) throw Error::internal(fmt::format("block {} is released and nobody holds it", block));
  if (--holders == 0) append(block);
}

void BlockPool::release_all(std::span<const BlockId> blocks) {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    if (*block >= 0) release(*block);
  }
}

void BlockPool::know(BlockId block, BlockContent content) {
  forget(block);
  const auto [first, alone] = by_key_.emplace(content.key, block);
  if (!alone) {
    BlockId last = first->second;
    while (same_[static_cast<std::size_t>(last)] != kNone) last = same_[static_cast<std::size_t>(last)];
    same_[static_cast<std::size_t>(last)] = block;
  }
  contents_[static_cast<std::size_t>(block)] = std::make_unique<BlockContent>(std::move(content));
}

void BlockPool::forget(BlockId block) {
  std::unique_ptr<BlockContent>& content = contents_[static_cast<std::size_t>(block)];
  if (!content) return;
  const BlockId after = std::exchange(same_[static_cast<std::size_t>(block)], kNone);
  const auto first = by_key_.find(content->key);
  if (first->second != block) {
    BlockId before = first->second;
    while (same_[static_cast<std::size_t>(before)] != block) before = same_[static_cast<std::size_t>(before)];
    same_[static_cast<std::size_t>(before)] = after;
  } else if (after != kNone) {
    first->second = after;
  } else {
    by_key_.erase(first);
  }
  content.reset();
}

std::optional<BlockId> BlockPool::find(const BlockKey& key) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  return found->second;
}

std::optional<BlockId> BlockPool::find(const BlockKey& key, const BlockKey& parent,
                                       std::span<const TokenId> tokens) const {
  const std::optional<BlockId> found = find(key);
  if (!found) return std::nullopt;
  const BlockContent& held = *content(*found);
  const bool same = held.parent == parent &&
                    std::equal(held.tokens.begin(), held.tokens.end(), tokens.begin(), tokens.end());
  return same ? found : std::nullopt;
}

const BlockContent* BlockPool::content(BlockId block) const {
  return contents_.at(static_cast<std::size_t>(block)).get();
}

}  // namespace assay
