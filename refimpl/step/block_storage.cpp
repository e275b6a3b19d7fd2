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

std::uint64_t bytes_a_token(const std::vector<CacheWidth>& layers, Real storage, bool coded) {
  const std::uint64_t each = storage == Real::f64 ? sizeof(double) : sizeof(float);
  std::uint64_t bytes = 0;
  for (const CacheWidth& width : layers) {
    bytes += (width.key_width + width.value_width) * each;
    if (!coded || !can_be_cut(width)) continue;
    for (const RowPart& part : {key_part(width), value_part(width)})
      bytes -= part.columns() * (each - 1) - part.heads * sizeof(float);
  }
  return bytes;
}

namespace {

StoredRows rows_for(Ops& ops, std::size_t rows, std::size_t columns, const RowPart& part) {
  if (columns == 0) rows = 0;
  return part.columns() == 0 ? StoredRows(ops, rows, columns) : StoredRows(ops, rows, columns, part);
}

}  // namespace

BlockStorage::BlockStorage(Ops& ops, const std::vector<CacheWidth>& layers, std::size_t block_tokens,
                           std::size_t blocks, bool coded)
    : widths_(layers),
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
    const bool cut = coded && can_be_cut(width);
    keys_.push_back(rows_for(ops, rows, width.key_width, cut ? key_part(width) : RowPart()));
    values_.push_back(rows_for(ops, rows, width.value_width, cut ? value_part(width) : RowPart()));
  }
}

std::uint64_t BlockStorage::bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t layer = 0; layer < keys_.size(); ++layer)
    bytes += keys_[layer].bytes() + values_[layer].bytes();
  return bytes;
}

void BlockStorage::copy(std::size_t group, std::int32_t from, std::int32_t to) {
  for (const std::size_t layer : groups_.at(group).layers) {
    for (const StoredRows* all : {&keys_[layer], &values_[layer]}) {
      if (!all->empty()) all->copy(first_row(from), first_row(to), block_tokens_);
    }
  }
}

void BlockStorage::move(const std::vector<BlockTable>& tables, std::size_t from, std::size_t to) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const std::size_t layer : groups_[g].layers) {
      for (const StoredRows* all : {&keys_[layer], &values_[layer]}) {
        if (all->empty()) continue;
        const auto row_of = [&](std::size_t token) {
          return static_cast<std::size_t>(row(tables.at(g), token));
        };
        all->copy(row_of(from), row_of(to), 1);
      }
    }
  }
}

void BlockStorage::poison(std::size_t group, std::int32_t block) {
  for (const std::size_t layer : groups_.at(group).layers) {
    for (const StoredRows* all : {&keys_[layer], &values_[layer]}) {
      if (!all->empty()) all->poison(first_row(block), block_tokens_);
    }
  }
}

std::vector<double> BlockStorage::read(std::size_t group, std::int32_t block) const {
  std::vector<double> numbers;
  for (const std::size_t layer : groups_.at(group).layers) {
    for (const StoredRows* all : {&keys_[layer], &values_[layer]}) {
      if (all->empty()) continue;
      const std::vector<double> rows = all->read(first_row(block), block_tokens_);
      numbers.insert(numbers.end(), rows.begin(), rows.end());
    }
  }
  return numbers;
}

void BlockStorage::write(std::size_t group, std::int32_t block, std::span<const double> numbers) {
  for (const std::size_t layer : groups_.at(group).layers) {
    const std::size_t count = block_tokens_ * (keys_[layer].numbers_a_row() + values_[layer].numbers_a_row());
    write_layer(layer, block, numbers.first(std::min(count, numbers.size())));
    numbers = numbers.subspan(count);
  }
  if (!numbers.empty()) throw Error::internal("a block of a cache is given too many numbers");
}

void BlockStorage::write_layer(std::size_t layer, std::int32_t block, std::span<const double> numbers) {
  for (const StoredRows* all : {&keys_.at(layer), &values_.at(layer)}) {
    if (all->empty()) continue;
    const std::size_t count = block_tokens_ * all->numbers_a_row();
    if (numbers.size() < count) throw Error::internal("a block of a cache is given too few numbers");
    all->write(first_row(block), block_tokens_, numbers.first(count));
    numbers = numbers.subspan(count);
  }
  if (!numbers.empty()) throw Error::internal("a block of a cache is given too many numbers");
}

}  // namespace assay
