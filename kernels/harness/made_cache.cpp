#include "kernels/harness/made_cache.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace assay {
namespace {

constexpr std::size_t kUnusedRows = 3;   // behind the last position
constexpr std::size_t kUnusedPages = 2;  // that belong to nobody

}  // namespace

MadeCache::MadeCache(Filled rows, std::size_t page_rows, std::uint64_t seed)
    : rows_(std::move(rows)), page_rows_(page_rows), capacity_(rows_.rows + kUnusedRows) {
  if (page_rows == 0) return;
  const std::size_t used = (rows_.rows + page_rows - 1) / page_rows, all = used + kUnusedPages;
  std::vector<std::int32_t> order(all);
  std::iota(order.begin(), order.end(), 0);
  InputStream stream(seed);
  for (std::size_t i = all; i > 1; --i) std::swap(order[i - 1], order[stream.next() % i]);
  pages_.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(used));
  capacity_ = all * page_rows;
}

PagedKvView MadeCache::upload_to(Ops& ops) const {
  PagedKvView cache = {.base = ops.allocate(capacity_, rows_.columns)};
  for (std::size_t r = 0; r < capacity_; ++r) fill_row_with_nan(cache.base, r);
  if (page_rows_ != 0) {
    cache.pages = pages_.data();
    cache.page_rows = page_rows_;
  }
  if (rows_.rows != 0) ops.store(cache, 0, upload(ops, rows_));
  return cache;
}

}  // namespace assay
