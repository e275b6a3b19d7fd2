// MiniMax-M3: an index picks, for each group of heads its own, the blocks of keys that a query attends to: those whose
// best key scores highest with the group's index query, and the block or blocks where the query stands.
//
// Qwen4-Exp: one choice for all heads. A block's key is the mean of its tokens', normed and rotated to where it begins; its
// score Σ_h relu(q_h · k). Blocks count where they are complete; the tokens behind the last one are always seen.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "refimpl/models/norms.h"
#include "refimpl/models/rope_table.h"
#include "refimpl/step/taps.h"

namespace assay {

struct BlockIndexForm {
  std::size_t block = 0, local_blocks = 0;  // keys a block; how many before a query are always picked
  bool pooled = false;                      // Qwen4-Exp's
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
  bool sees_all(std::size_t position) const {
    return form.pooled ? (position + 1) / form.block <= top_blocks : position / form.block < top_blocks;
  }

  // Where pooled: the keys of all complete blocks of a text whose tokens keep `kept` [tokens, head_dim].
  std::vector<double> keys_of_blocks(const Matrix& kept, const RopeRule& rule, Ops& ops) const;
  // The places that a query at `position` attends to, ascending; `query` is of all heads.
  std::vector<std::int32_t> best_places(std::span<const double> query, std::span<const double> keys,
                                        std::size_t position) const;
  std::size_t most_places() const { return (top_blocks + 1) * form.block - 1; }
};

}  // namespace assay
