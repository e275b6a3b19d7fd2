// MiniMax-M3: an index picks, for each group of heads its own, the blocks of keys that a query attends to: those whose
// best key scores highest with the group's index query, and the block or blocks where the query stands.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "refimpl/models/norms.h"
#include "refimpl/models/rope_table.h"
#include "refimpl/step/taps.h"

namespace assay {

struct BlockIndexForm {
  std::size_t block = 0, local_blocks = 0;  // keys a block; how many before a query are always picked
};

struct BlockIndex {
  WeightView q, k;
  Norm q_norm, k_norm;
  std::size_t heads = 0, head_dim = 0, top_blocks = 0;
  std::size_t key_heads = 0;  // that go by one head of the index
  BlockIndexForm form;
  RopeLayout layout = RopeLayout::half_split;

  // None in a layer that attends to every key. `geometry` is the whole model's: of one that is cut over ranks every rank
  // has the whole index.
  static std::optional<BlockIndex> find(const Weights& weights, std::size_t layer,
                                        const AttentionGeometry& geometry, const BlockIndexForm& form,
                                        const NormRule& rule);

  // What a token keeps: [tokens, head_dim].
  Matrix keys_of(const Matrix& x, const RopeAngles& angles, Ops& ops, const TapScope& at) const;
  Matrix queries_of(const Matrix& x, const RopeAngles& angles, Ops& ops, const TapScope& at) const;

  // The blocks of one query at `position`, ascending. `scores` is of the keys up to there.
  std::vector<std::int32_t> best(const std::vector<double>& scores, std::size_t position) const;
  bool sees_all(std::size_t position) const { return position / form.block < top_blocks; }
};

}  // namespace assay
