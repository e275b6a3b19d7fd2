#include "refimpl/caches/kept_tokens.h"

#include <algorithm>
#include <numeric>

#include "core/system/error.h"
#include "refimpl/step/row_parts.h"

namespace assay {
namespace {

void move_together(Ops& ops, const PagedKvView& rows, std::size_t head, std::size_t width,
                   const std::vector<std::size_t>& stay) {
  if (width == 0) return;
  const Matrix part = rows.base.part(head * width, width);
  ops.store({.base = part}, 0, ops.gather(part, stay));
}

}  // namespace

KeptTokens::KeptTokens(const CacheWidth& width)
    : key_dim_(width.key_width / width.kv_heads),
      value_dim_(width.value_width / width.kv_heads),
      columns_(width.key_width + width.value_width),
      kept_(width.kv_heads) {}

void KeptTokens::append(std::size_t count) {
  for (std::vector<std::size_t>& head : kept_) {
    for (std::size_t i = 0; i < count; ++i) head.push_back(tokens_ + i);
  }
  tokens_ += count;
}

void KeptTokens::keep(const CacheRows& rows, const std::vector<std::vector<std::size_t>>& stay) {
  if (stay.size() != kept_.size()) throw Error::internal("rows to keep of another number of heads");
  for (std::size_t head = 0; head < kept_.size(); ++head) {
    if (stay[head].size() != stay.front().size()) throw Error::internal("heads that keep more than others");
    move_together(rows.ops, rows.keys, head, key_dim_, stay[head]);
    move_together(rows.ops, rows.values, head, value_dim_, stay[head]);
    std::vector<std::size_t> places;
    for (const std::size_t row : stay[head]) places.push_back(kept_[head].at(row));
    kept_[head] = std::move(places);
  }
}

double KeptTokens::bytes() const {
  return static_cast<double>(rows() * columns_) * kFullBytes;
}

std::vector<std::size_t> largest_of(std::span<const double> scores, std::size_t count) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min(count, order.size()));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace assay
