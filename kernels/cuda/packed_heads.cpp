#include "kernels/cuda/packed_heads.h"

#include <algorithm>
#include <cstring>

#include "core/numeric/codec.h"
#include "kernels/cuda/plan_attention.h"

namespace assay::cuda {

std::size_t HeadFormat::padded() const {
  return padded_head(dim, element_bytes);
}

PackedHeads::PackedHeads(const HeadFormat& format, std::size_t rows)
    : format_(format), memory_(rows * format.stride() * format.element_bytes / sizeof(Vector)) {
  if (!memory_.empty()) std::memset(static_cast<void*>(memory_.data()), 0xFF, bytes());
}

void PackedHeads::fill(std::size_t row, const float* from) {
  const std::size_t padded = format_.padded(), bytes = padded * format_.element_bytes;
  std::byte* to = memory_.data()->bytes + row * format_.stride() * format_.element_bytes;
  for (std::size_t h = 0; h < format_.heads; ++h, to += bytes, from += format_.dim) {
    std::memset(to, 0, bytes);
    if (format_.element_bytes == sizeof(float)) {
      std::memcpy(to, from, format_.dim * sizeof(float));
      continue;
    }
    for (std::size_t i = 0; i < format_.dim; ++i) {
      const auto code = static_cast<std::uint16_t>(encode(kBF16, from[i], Overflow::special));
      std::memcpy(to + 2 * i, &code, sizeof code);
    }
  }
}

void PackedCaches::add(const CacheRows& cache, std::size_t positions) {
  if (positions == 0) return;
  Pool& pool = pools_[cache.base.row<float>(0)];
  for (std::size_t p = 0; p < positions; ++p) pool.rows = std::max(pool.rows, cache.row(p) + 1);
  pool.sequences.emplace_back(&cache, positions);
}

const void* PackedCaches::stage(const CacheRows& cache) {
  const auto it = cache.base.empty() ? pools_.end() : pools_.find(cache.base.row<float>(0));
  if (it == pools_.end()) return nullptr;
  Pool& pool = it->second;
  if (pool.packed == nullptr) {
    pool.packed = std::make_unique<PackedHeads>(format_, pool.rows);
    for (const auto& [rows, positions] : pool.sequences) {
      for (std::size_t p = 0; p < positions; ++p)
        pool.packed->fill(rows->row(p), rows->base.row<float>(rows->row(p)));
    }
  }
  return staging_.read(pool.packed->data(), pool.packed->bytes());
}

}  // namespace assay::cuda
