#include "refimpl/models/block_index.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/system/error.h"

namespace assay {

std::optional<BlockIndex> BlockIndex::find(const Weights& weights, std::size_t layer,
                                           const AttentionGeometry& geometry, const BlockIndexForm& form,
                                           const NormRule& rule) {
  if (geometry.indexer_heads == 0) return std::nullopt;
  if (form.block == 0) throw Error::internal("an index without blocks of keys");
  const auto norm = [&](int number) {
    return Norm(weights.get({.role = Role::indexer_k_norm, .layer = layer, .half = number}), {}, rule);
  };
  BlockIndex index;
  index.q = weights.get({.role = Role::indexer_q, .layer = layer});
  index.k = weights.get({.role = Role::indexer_k, .layer = layer});
  index.q_norm = norm(0);
  index.k_norm = norm(1);
  index.heads = geometry.indexer_heads;
  index.head_dim = geometry.indexer_head_dim;
  index.top_blocks = geometry.indexer_top_k / form.block;
  index.form = form;
  index.key_heads = geometry.kv_heads / index.heads;
  if (geometry.kv_heads % index.heads != 0)
    throw Error::input("the heads of the index are no divisor of the key heads")
        .in(weights.config().source());
  return index;
}

Matrix BlockIndex::keys_of(const Matrix& x, const RopeAngles& angles, Ops& ops, const TapScope& at) const {
  const Matrix keys = k_norm(ops.linear(x, k), ops);
  ops.rope(keys, {.heads = 1, .head_dim = head_dim, .cos = angles.cos, .sin = angles.sin, .layout = layout});
  at("index_k", keys);
  return keys;
}

Matrix BlockIndex::queries_of(const Matrix& x, const RopeAngles& angles, Ops& ops, const TapScope& at) const {
  const Matrix queries = q_norm(ops.linear(x, q), ops);
  ops.rope(queries,
           {.heads = heads, .head_dim = head_dim, .cos = angles.cos, .sin = angles.sin, .layout = layout});
  at("index_q", queries);
  return queries;
}

std::vector<std::int32_t> BlockIndex::best(const std::vector<double>& scores, std::size_t position) const {
  const std::size_t own = position / form.block;
  std::vector<double> of_block(own + 1, -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i <= position; ++i)
    of_block[i / form.block] = std::max(of_block[i / form.block], scores[i]);
  for (std::size_t i = 0; i < form.local_blocks && i <= own; ++i)
    of_block[own - i] = std::numeric_limits<double>::infinity();
  std::vector<std::int32_t> order(own + 1);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return of_block[static_cast<std::size_t>(a)] > of_block[static_cast<std::size_t>(b)];
  });
  order.resize(std::min(order.size(), top_blocks));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace assay
