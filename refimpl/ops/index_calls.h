// Attention to some keys only (DeepSeek-V3.2, arXiv 2512.02556 §2.1): an indexer scores every key a query may see,
//
//   score[t, s] = Σ_h w[t, h] · relu(q[t, h] · k[s])
//
// and the best top_k are attended to. What they are attended to with is AttentionCall or MlaCall, whose rows the
// choice picks as pages of one row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "refimpl/ops/calls.h"

namespace assay {

class Ops;

// By row of IndexCall::q: the keys it attends to, in their order; all it may see, where these are top_k or fewer.
struct KeyChoice {
  std::vector<std::vector<std::int32_t>> keys;
  Matrix positions;  // the same, to be looked at: [tokens, top_k], -1 behind the last
};

// The queries of one sequence within a batch, at positions `position` and after it.
struct IndexSequence {
  std::size_t first = 0, queries = 0;  // rows of IndexCall::q
  std::size_t position = 0;
  PagedKvView key_rows;  // [keys, head_dim]
};
struct IndexCall {
  using Result = KeyChoice;
  static constexpr std::string_view kOp = "index";
  Matrix q;        // [tokens, heads · head_dim], rotated
  Matrix weights;  // [tokens, heads]
  std::vector<IndexSequence> sequences;
  std::size_t heads = 0, head_dim = 0, top_k = 0;
  // So many tokens stand behind a key: a query at position p sees the first (p + 1) / tokens_a_key keys.
  std::size_t tokens_a_key = 1;
};

// visit(row of q, its scores) in float64, of every row that a sequence has; by several threads, in any order.
void visit_key_scores(Ops& ops, const IndexCall& call,
                      const std::function<void(std::size_t row, std::span<const double> scores)>& visit);
// The `count` best of one row, in their order: of equal scores the earlier key, and NaN behind all numbers.
std::vector<std::int32_t> best_keys(std::span<const double> scores, std::size_t count);
// With their positions as a matrix of `ops`.
KeyChoice with_positions(Ops& ops, std::vector<std::vector<std::int32_t>> keys, std::size_t top_k);

// Error::internal with the shapes, where they do not fit each other.
void check_index(const IndexCall& call);

}  // namespace assay
