// A level behind the pool: what the pool evicts may be kept there, by its key, and comes back when it is wanted again.
// The scheduler asks it by name and sees no numbers.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "refimpl/engine/block_pool.h"
#include "refimpl/step/layer_arrivals.h"

namespace assay {

// A block of a group of layers, as it comes back.
struct OuterBlock {
  std::vector<double> rows;  // as BlockStorage::read() has them; empty: `later`
  std::shared_ptr<const SequenceCache::States> states =
      {};  // behind its last token, where they were asked for
  std::shared_ptr<LayeredRows> later = {};
};

class OuterLevel {
 public:
  virtual ~OuterLevel() = default;

  // Is it there, so far as is known without reading it?
  virtual bool has(std::size_t group, const BlockContent& wanted, bool with_states) const = 0;
  // None: it was damaged, or is not what is wanted; and is not there any more.
  virtual std::optional<OuterBlock> fetch(std::size_t group, const BlockContent& wanted,
                                          bool with_states) = 0;
  // `block` holds this, and will hold something else soon.
  virtual void keep(std::size_t group, BlockId block, const BlockContent& content) = 0;
  // All that was kept is where it goes. Throws what went wrong behind the engine's back.
  virtual void finish() {}
};

}  // namespace assay
