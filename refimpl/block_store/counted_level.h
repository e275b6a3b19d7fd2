// The second level where only counts matter: what it would have, and nothing in it.
#pragma once

#include <cstdint>
#include <vector>

#include "refimpl/block_store/block_name.h"
#include "refimpl/block_store/lru_bytes.h"
#include "refimpl/engine/outer_level.h"

namespace assay {

// Bytes of a block, by group; of one of the first with states beside it.
struct BlockSizes {
  std::vector<std::uint64_t> plain = {1};
  std::uint64_t with_states = 0;  // 0: the model has none
};

class CountedLevel : public OuterLevel {
 public:
  CountedLevel(BlockSizes sizes, std::uint64_t most_bytes) : sizes_(std::move(sizes)), held_(most_bytes) {}

  bool has(std::size_t group, const BlockContent& wanted, bool with_states) const override {
    return held_.has(block_name(group, wanted.key, true)) ||
           (!with_states && held_.has(block_name(group, wanted.key, false)));
  }
  std::optional<OuterBlock> fetch(std::size_t group, const BlockContent& wanted, bool with_states) override {
    const bool stated = with_states || held_.has(block_name(group, wanted.key, true));
    held_.touch(block_name(group, wanted.key, stated));
    OuterBlock block;
    if (with_states) block.states = std::make_shared<const SequenceCache::States>();
    return block;
  }
  void keep(std::size_t group, BlockId, const BlockContent& content) override {
    const bool stated = content.states != nullptr && sizes_.with_states > 0;
    const std::string name = block_name(group, content.key, stated);
    if (held_.has(name)) return held_.touch(name);
    held_.add(name, stated ? sizes_.with_states : sizes_.plain.at(group),
              [this](const auto&) { ++evictions_; });
  }

  std::size_t evictions() const { return evictions_; }

 private:
  BlockSizes sizes_;
  LruBytes held_;
  std::size_t evictions_ = 0;
};

}  // namespace assay
