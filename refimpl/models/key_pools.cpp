#include "refimpl/models/key_pools.h"

#include "refimpl/ops/pool_calls.h"

namespace assay {

std::optional<KeyPools> KeyPools::find(const Weights& weights, std::size_t layer) {
  const auto number = [&](int i) {
    return weights.find({.role = Role::indexer_k, .layer = layer, .half = i});
  };
  const WeightView position = number(1), gate = number(2);
  if (!position || !gate) return std::nullopt;
  return KeyPools{gate, position};
}

Matrix KeyPools::kept(const Matrix& x, const Matrix& keys, Ops& ops) const {
  return ops.concatenate(keys, ops.linear(x, gate));
}

PagedKvView KeyPools::pooled(const PagedKvView& rows, std::size_t count, Ops& ops) const {
  std::vector<std::size_t> places(count);
  for (std::size_t i = 0; i < count; ++i) places[i] = rows.row(i);
  const Matrix all = ops.gather(rows.base, places);
  const std::size_t width = position.columns;
  return {.base = pool(ops, {.values = all.part(0, width),
                             .gates = all.part(width, width),
                             .position = position,
                             .ratio = tokens()})};
}

KeyChoice KeyPools::tokens_of(const KeyChoice& chosen, const Batch& batch, std::size_t most, Ops& ops) const {
  std::vector<std::vector<std::int32_t>> keys(chosen.keys.size());
  for (const Batch::Sequence& sequence : batch.sequences) {
    for (std::size_t t = sequence.first; t < sequence.first + sequence.count; ++t) {
      const std::size_t seen = sequence.cache->length() + (t - sequence.first) + 1;
      const auto add = [&](std::size_t first, std::size_t end) {
        for (std::size_t key = first; key < end; ++key) keys[t].push_back(static_cast<std::int32_t>(key));
      };
      for (const std::int32_t pool : chosen.keys[t]) {
        const std::size_t first = static_cast<std::size_t>(pool) * tokens();
        add(first, first + tokens());
      }
      add(seen / tokens() * tokens(), seen);
    }
  }
  return with_positions(ops, std::move(keys), most);
}

}  // namespace assay
