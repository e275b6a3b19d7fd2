// The blocks of one group of a cache's layers: who holds each, in which order the free ones are taken, and which of
// them still hold what another text may want.
//
//   free ── take() ──▶ held by one ── hold() ──▶ held by n ── release() n times ──▶ free, at the end of the queue
//
// A block that was filled is known by its key until it is taken for something else: find() names it, hold() fetches it
// back from the queue. The queue is so in the order of last use: taking evicts what was used longest ago.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "refimpl/engine/block_key.h"
#include "refimpl/step/kv_cache.h"

namespace assay {

using BlockId = std::int32_t;

// What a full block holds.
struct BlockContent {
  BlockKey key, parent;
  std::vector<TokenId> tokens;
  std::shared_ptr<const SequenceCache::States> states = {};  // behind its last token; none: not kept
  std::size_t number = 0;                                    // of its text's blocks, from 0 on
  std::shared_ptr<const std::vector<Matrix>> drafts = {};  // what a drafter keeps beside it (Drafter::beside)
};

class BlockPool {
 public:
  explicit BlockPool(std::size_t blocks);  // the queue begins with block 0
  virtual ~BlockPool() = default;

  std::size_t size() const { return holders_.size(); }
  virtual std::size_t free_blocks() const { return free_; }
  std::size_t holders(BlockId block) const { return holders_.at(static_cast<std::size_t>(block)); }
  std::vector<BlockId> queue() const;   // the next to be taken first
  std::optional<BlockId> next() const;  // the first of the queue
  std::size_t evictions() const { return evictions_; }

  // The first of the queue, forgotten what it held; none: all are held.
  virtual std::optional<BlockId> take();
  virtual void hold(BlockId block);
  // Throws Error::internal where nobody holds it.
  virtual void release(BlockId block);
  // Blocks of a text in its order: the last is released first, so that of a text that nobody wants any more the
  // end is evicted before the beginning, without which it would be of no use. Those < 0 were given back before.
  virtual void release_all(std::span<const BlockId> blocks);

  // From now on the block is found by its content's key. Of blocks with the same content the first is found, and when
  // that is taken for something else, the next.
  virtual void know(BlockId block, BlockContent content);
  // The block of this key, if it really holds these tokens behind this parent.
  virtual std::optional<BlockId> find(const BlockKey& key, const BlockKey& parent,
                                      std::span<const TokenId> tokens) const;
  const BlockContent* content(BlockId block) const;  // none: it is not known
  void forget(BlockId block);                        // what it holds; whoever holds it goes on holding it

 protected:
  std::optional<BlockId> find(const BlockKey& key) const;

 private:
  static constexpr BlockId kNone = -1;
  void append(BlockId block);  // to the queue
  void remove(BlockId block);  // from it

  std::vector<std::size_t> holders_;
  std::vector<BlockId> next_, previous_;  // of free blocks
  BlockId first_ = kNone, last_ = kNone;
  std::size_t free_ = 0, evictions_ = 0;
  std::vector<std::unique_ptr<BlockContent>> contents_;
  std::unordered_map<BlockKey, BlockId, BlockKeyHash> by_key_;  // the first of those with the key
  std::vector<BlockId> same_;                                   // behind each: the next with its key
};

}  // namespace assay
