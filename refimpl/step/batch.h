// What a forward pass is given: the new tokens of several sequences.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "refimpl/ops/interface.h"
#include "refimpl/step/kv_cache.h"

namespace assay {

// One step of several sequences: their new tokens on end. Tokens of a sequence stand at the positions after
// those its cache has; the step ends with advance(), which is the caller's business.
struct Batch {
  // Thrown between layers where the user wants no more of it (Ctrl-C): the step never was.
  struct Interrupted {};
  struct Sequence {
    std::size_t first = 0, count = 0;  // of tokens
    SequenceCache* cache = nullptr;
  };
  std::vector<TokenId> tokens;
  std::vector<std::size_t> positions;  // of each token: SequenceCache::next_place() and on
  std::vector<Sequence> sequences;

  // Set by a caller that catches Interrupted: a step may take seconds.
  bool may_stop = false;

  void add(std::span<const TokenId> tokens, SequenceCache& cache);
  bool renumbered() const;  // a cache puts its rows elsewhere than where they stood
  void go_on() const;       // asked by forward passes, layer by layer
};

}  // namespace assay
