// Keys of an indexer that stand for so many tokens each (GLM-5.3-Flash), one for every whole pool, by channel:
//
//   key[e] = Σ_j softmax_j(W_gate x_j + position[j]) · key_j      j: the tokens of pool e
//
// A chosen pool is all of its tokens, and a query sees as well those of the pool that is not full yet. What the cache keeps
// of a token is [key | gate], so that pools are made anew in each step and tokens can be taken back.
#pragma once

#include <optional>

#include "refimpl/models/weights.h"
#include "refimpl/ops/index_calls.h"
#include "refimpl/step/batch.h"

namespace assay {

struct KeyPools {
  WeightView gate;      // [index dim, hidden]
  WeightView position;  // [tokens of a pool, index dim]

  // None where the layer's indexer scores keys themselves.
  static std::optional<KeyPools> find(const Weights& weights, std::size_t layer);
  std::size_t tokens() const { return position.rows; }
  Matrix kept(const Matrix& x, const Matrix& keys, Ops& ops) const;  // [tokens, 2 · index dim]
  // Those of the first `count` tokens, of which `rows` are what was kept.
  PagedKvView pooled(const PagedKvView& rows, std::size_t count, Ops& ops) const;
  // Of pools that queries chose their tokens, at most so many, with those behind the last whole pool.
  KeyChoice tokens_of(const KeyChoice& chosen, const Batch& batch, std::size_t most, Ops& ops) const;
};

}  // namespace assay
