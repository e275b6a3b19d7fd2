#include "refimpl/step/block_storage.h"

#include <algorithm>
#include <limits>

#include "core/system/error.h"

namespace assay {

std::vector<CacheGroup> cache_groups(const std::vector<CacheWidth>& layers) {
  std::vector<CacheGroup> groups(1);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const CacheGroup& g) { return g.window == layers[i].window; });
    if (same != groups.end())
      same->layers.push_back(i);
    else
      groups.push_back({layers[i].window, {i}});
  }
  return groups;
}

BlockStorage::BlockStorage(Ops& ops, const std::vector<CacheWidth>& layers, std::size_t block_tokens,
                           std::size_t blocks)
    : ops_(ops),
      widths_(layers),
      groups_(cache_groups(layers)),
      group_of_(layers.size()),
      block_tokens_(block_tokens),
      blocks_(blocks) {
  if (block_tokens == 0) throw Error::usage("a block of a cache holds at least one token");
  std::size_t rows = 0;
  if (blocks > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()) ||
      __builtin_mul_overflow(blocks, block_tokens, &rows))
    throw Error::input("a cache beyond all memory");
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const std::size_t layer : groups_[g].layers) group_of_[layer] = g;
  }
  for (const CacheWidth& width : layers) {
    keys_.push_back(ops.allocate(width.key_width == 0 ? 0 : rows, width.key_width));
    values_.push_back(ops.allocate(width.value_width == 0 ? 0 : rows, width.value_width));
  }
}

Matrix BlockStorage::rows_of(const Matrix& all, std::int32_t block) const {
  return all.row_range(static_cast<std::size_t>(block) * block_tokens_, block_tokens_);
}

void BlockStorage::copy(std::size_t group, std::int32_t from, std::int32_t to) {
  for (const std::size_t layer : groups_.at(group).layers) {
    for (const Matrix* all : {&keys_[layer], &values_[layer]}) {
      if (!all->empty()) ops_.store({.base = rows_of(*all, to)}, 0, rows_of(*all, from));
    }
  }
}

void BlockStorage::move(const std::vector<BlockTable>& tables, std::size_t from, std::size_t to) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const std::size_t layer : groups_[g].layers) {
      for (const Matrix* all : {&keys_[layer], &values_[layer]}) {
        if (all->empty()) continue;
        const auto row_of = [&](std::size_t token) {
          return all->row_range(static_cast<std::size_t>(row(tables.at(g), token)), 1);
        };
        ops_.store({.base = row_of(to)}, 0, row_of(from));
      }
    }
  }
}

void BlockStorage::poison(std::size_t group, std::int32_t block) {
  for (const std::size_t layer : groups_.at(group).layers) {
    for (const Matrix* all : {&keys_[layer], &values_[layer]}) {
      if (all->empty()) continue;
      const std::vector<double> nothing(block_tokens_ * all->columns(),
                                        std::numeric_limits<double>::quiet_NaN());
      ops_.store({.base = rows_of(*all, block)}, 0, ops_.upload(nothing, block_tokens_, all->columns()));
    }
  }
}

std::vector<double> BlockStorage::read(std::size_t group, std::int32_t block) const {
  std::vector<double> numbers;
  for (const std::size_t layer : groups_.at(group).layers) {
    for (const Matrix* all : {&keys_[layer], &values_[layer]}) {
      if (all->empty()) continue;
      const std::vector<double> rows = ops_.download(rows_of(*all, block));
      numbers.insert(numbers.end(), rows.begin(), rows.end());
    }
  }
  return numbers;
}

void BlockStorage::write(std::size_t group, std::int32_t block, std::span<const double> numbers) {
  for (const std::size_t layer : groups_.at(group).layers) {
    const std::size_t count = block_tokens_ * (keys_[layer].columns() + values_[layer].columns());
    write_layer(layer, block, numbers.first(std::min(count, numbers.size())));
    numbers = numbers.subspan(count);
  }
  if (!numbers.empty()) throw Error::internal("a block of a cache is given too many numbers");
}

void BlockStorage::write_layer(std::size_t layer, std::int32_t block, std::span<const double> numbers) {
  for (const Matrix* all : {&keys_.at(layer), &values_.at(layer)}) {
    if (all->empty()) continue;
    const std::size_t count = block_tokens_ * all->columns();
    if (numbers.size() < count) throw Error::internal("a block of a cache is given too few numbers");
    ops_.store({.base = rows_of(*all, block)}, 0,
               ops_.upload(numbers.first(count), block_tokens_, all->columns()));
    numbers = numbers.subspan(count);
  }
  if (!numbers.empty()) throw Error::internal("a block of a cache is given too many numbers");
}

}  // namespace assay
