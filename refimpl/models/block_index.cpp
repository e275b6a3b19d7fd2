#include "refimpl/models/block_index.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/system/error.h"
#include "refimpl/ops/index_calls.h"

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
  index.heads = geometry.indexer_heads;
  index.head_dim = geometry.indexer_head_dim;
  if (form.pooled) {  // both in one matrix
    const std::size_t queries = index.heads * index.head_dim;
    if (index.q.outputs() != queries + index.head_dim)
      throw Error::input("is no matrix of the index's queries and one key").tensor(*index.q.name);
    index.k = index.q.row_range(queries, index.head_dim);
    index.q = index.q.row_range(0, queries);
  } else {
    index.k = weights.get({.role = Role::indexer_k, .layer = layer});
  }
  index.q_norm = norm(0);
  index.k_norm = norm(1);
  index.top_blocks = geometry.indexer_top_k / form.block;
  index.form = form;
  if (form.pooled) return index;
  index.key_heads = geometry.kv_heads / index.heads;
  if (geometry.kv_heads % index.heads != 0)
    throw Error::input("the heads of the index are no divisor of the key heads")
        .in(weights.config().source());
  return index;
}

Matrix BlockIndex::keys_of(const Matrix& x, const RopeAngles& angles, Ops& ops, const TapScope& at) const {
  if (form.pooled) {  // normed and rotated behind the pool
    Matrix raw = ops.linear(x, k);
    at("index_k", raw);
    return raw;
  }
  Matrix keys = k_norm(ops.linear(x, k), ops);
  ops.rope(keys, {.heads = 1, .head_dim = head_dim, .cos = angles.cos, .sin = angles.sin, .layout = layout});
  at("index_k", keys);
  return keys;
}

Matrix BlockIndex::queries_of(const Matrix& x, const RopeAngles& angles, Ops& ops, const TapScope& at) const {
  Matrix queries = q_norm(ops.linear(x, q), ops);
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

std::vector<double> BlockIndex::keys_of_blocks(const Matrix& kept, const RopeRule& rule, Ops& ops) const {
  const std::size_t blocks = kept.rows() / form.block;
  const std::vector<double> tokens = ops.download(kept);
  std::vector<double> means(blocks * head_dim);
  for (std::size_t i = 0; i < blocks * form.block * head_dim; ++i)
    means[i / (form.block * head_dim) * head_dim + i % head_dim] += tokens[i];
  for (double& mean : means) mean /= static_cast<double>(form.block);
  if (blocks == 0) return {};
  const Matrix keys = k_norm(ops.upload(means, blocks, head_dim), ops);
  std::vector<std::size_t> places(blocks);
  for (std::size_t b = 0; b < blocks; ++b) places[b] = b * form.block;
  const RopeAngles angles = angles_at(rule, places, kept.rows(), ops);
  ops.rope(keys, {.heads = 1, .head_dim = head_dim, .cos = angles.cos, .sin = angles.sin, .layout = layout});
  return ops.download(keys);
}

std::vector<std::int32_t> BlockIndex::best_places(std::span<const double> query, std::span<const double> keys,
                                                  std::size_t position) const {
  const std::size_t complete = (position + 1) / form.block;
  std::vector<double> scores(complete);
  for (std::size_t b = 0; b < complete; ++b) {
    for (std::size_t h = 0; h < heads; ++h) {
      const auto key = keys.subspan(b * head_dim, head_dim);
      scores[b] +=
          std::max(0.0, std::inner_product(key.begin(), key.end(), query.subspan(h * head_dim).begin(), 0.0));
    }
  }
  std::vector<std::int32_t> places;
  const auto add = [&](std::size_t first, std::size_t end) {
    for (std::size_t place = first; place < end; ++place) places.push_back(static_cast<std::int32_t>(place));
  };
  for (const std::int32_t block : best_keys(scores, top_blocks))
    add(static_cast<std::size_t>(block) * form.block, (static_cast<std::size_t>(block) + 1) * form.block);
  add(complete * form.block, position + 1);
  return places;
}

}  // namespace assay
