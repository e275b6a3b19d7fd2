// The memory of many sequences' caches, in blocks of a fixed number of tokens. A sequence has a table of blocks for
// each group of layers: token t of it lies in row t % block_tokens of block table[t / block_tokens].
//
// Layers that look equally far back share a table (CacheGroup): those with a window of w tokens need no block that
// lies w tokens back, which can then serve another sequence. The group of layers that see everything comes first and is
// there even where no layer is of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "refimpl/ops/interface.h"
#include "refimpl/step/kv_cache.h"
#include "refimpl/step/stored_rows.h"

namespace assay {

struct CacheGroup {
  std::size_t window = 0;  // 0: all tokens
  std::vector<std::size_t> layers;
};
std::vector<CacheGroup> cache_groups(const std::vector<CacheWidth>& layers);

using BlockTable = std::vector<std::int32_t>;

// Of all layers, as a BlockStorage keeps a token's rows.
std::uint64_t bytes_a_token(const std::vector<CacheWidth>& layers, Real storage, bool coded);

class BlockStorage {
 public:
  // `blocks` of each group. Throws Error::input where no memory could hold them. `coded`: rows that can be cut into heads
  // lie as INT8 codes (StoredRows), and whoever reads a layer's gets them decoded.
  BlockStorage(Ops& ops, const std::vector<CacheWidth>& layers, std::size_t block_tokens, std::size_t blocks,
               bool coded = false);

  std::size_t block_tokens() const { return block_tokens_; }
  std::size_t blocks() const { return blocks_; }
  const std::vector<CacheWidth>& widths() const { return widths_; }
  const std::vector<CacheGroup>& groups() const { return groups_; }
  std::size_t group_of(std::size_t layer) const { return group_of_.at(layer); }

  // [blocks · block_tokens, key_width], of codes no rows; [blocks · block_tokens, value_width].
  Matrix keys(std::size_t layer) const { return keys_.at(layer).in_full(); }
  Matrix values(std::size_t layer) const { return values_.at(layer).in_full(); }
  const StoredRows& key_rows(std::size_t layer) const { return keys_.at(layer); }
  const StoredRows& value_rows(std::size_t layer) const { return values_.at(layer); }
  std::uint64_t bytes() const;  // of all rows

  // Blocks of one group: what one holds is written over another, or NaN over it, so that whoever reads what nobody
  // wrote is found out.
  void copy(std::size_t group, std::int32_t from, std::int32_t to);
  void poison(std::size_t group, std::int32_t block);
  // Token `from` of a text of these tables, in all layers, over token `to`.
  void move(const std::vector<BlockTable>& tables, std::size_t from, std::size_t to);
  // The row in which a token of a table lies; -1: in none any more.
  std::int32_t row(const BlockTable& table, std::size_t token) const {
    const std::int32_t block = table.at(token / block_tokens_);
    return block < 0 ? -1
                     : static_cast<std::int32_t>(static_cast<std::size_t>(block) * block_tokens_ +
                                                 token % block_tokens_);
  }

  // All numbers of a block as they lie, layer by layer, keys before values.
  std::vector<double> read(std::size_t group, std::int32_t block) const;
  void write(std::size_t group, std::int32_t block, std::span<const double> numbers);
  // Of one layer of its group.
  void write_layer(std::size_t layer, std::int32_t block, std::span<const double> numbers);

  // Rows of a layer may be on their way: whoever puts or reads some asks first, and goes on when they are there.
  void set_arrivals(std::function<void(std::size_t layer)> wait) { wait_ = std::move(wait); }
  void await(std::size_t layer) const {
    if (wait_) wait_(layer);
  }

 private:
  std::size_t first_row(std::int32_t block) const { return static_cast<std::size_t>(block) * block_tokens_; }

  std::vector<CacheWidth> widths_;
  std::vector<CacheGroup> groups_;
  std::vector<std::size_t> group_of_;
  std::size_t block_tokens_, blocks_;
  std::vector<StoredRows> keys_, values_;
  std::function<void(std::size_t)> wait_;
};

}  // namespace assay
