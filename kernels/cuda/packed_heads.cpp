#include "kernels/cuda/packed_heads.h"

#include <algorithm>
#include <cstdint>

namespace assay::cuda {

PackedRows packed_rows(const DeviceLimits& limits, Staging& staging, const Matrix& rows,
                       const HeadFormat& format, PackLauncher pack) {
  if (rows.empty()) return {};
  const float* from = staging.in(rows);
  const bool aligned = reinterpret_cast<std::uintptr_t>(from) % 16 == 0 && rows.stride() % 4 == 0;
  if (format.element_bytes == 4 && format.padded() == format.dim && aligned) return {from, rows.stride()};

  const std::size_t stride = format.heads * format.padded();
  void* to = staging.scratch(rows.rows() * stride * format.element_bytes);
  pack(plan_pack_heads(limits, rows.rows() * stride * format.element_bytes),
       {.from = from,
        .to = to,
        .stride = rows.stride(),
        .rows = rows.rows(),
        .heads = static_cast<std::uint32_t>(format.heads),
        .dim = static_cast<std::uint32_t>(format.dim),
        .padded = static_cast<std::uint32_t>(format.padded())},
       format.element_bytes, staging.stream());
  return {to, stride};
}

void PackedCaches::add(const PagedKvView& cache, std::size_t positions) {
  if (positions == 0) return;
  Pool& pool = pools_[cache.base.row<float>(0)];
  pool.base = cache.base;
  if (cache.pages == nullptr) {
    pool.rows = std::max(pool.rows, positions);
    return;
  }
  for (std::size_t first = 0; first < positions; first += cache.page_rows)
    pool.rows = std::max(pool.rows, cache.row(std::min(first + cache.page_rows, positions) - 1) + 1);
}

std::size_t PackedCaches::most_rows() const {
  std::size_t most = 0;
  for (const auto& [base, pool] : pools_) most = std::max(most, pool.rows);
  return most;
}

PackedRows PackedCaches::find(const PagedKvView& cache, const PoolReader& read) {
  const auto it = cache.base.empty() ? pools_.end() : pools_.find(cache.base.row<float>(0));
  if (it == pools_.end()) return {};
  Pool& pool = it->second;
  if (pool.packed.data == nullptr) pool.packed = read(pool.base.row_range(0, pool.rows));
  return pool.packed;
}

}  // namespace assay::cuda
