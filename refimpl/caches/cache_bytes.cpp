#include "refimpl/caches/cache_bytes.h"

#include <algorithm>

#include "refimpl/step/row_parts.h"

namespace assay {

CacheBytes cache_bytes(const SequenceCache& cache, const std::vector<CacheWidth>& widths) {
  CacheBytes bytes;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const CacheWidth& width = widths[i];
    if (width.key_width == 0 || width.drafts) continue;
    const auto in_full = [&](std::size_t rows) {
      return static_cast<double>(rows * (width.key_width + width.value_width)) * kFullBytes;
    };
    const LayerPolicy* policy = cache.policy(i);
    // A layer that looks back a window needs no row beyond it.
    const std::size_t seen = width.window == 0 ? cache.length() : std::min(cache.length(), width.window);
    bytes.full += in_full(seen);
    bytes.held += policy == nullptr ? in_full(seen) : policy->bytes();
    bytes.rows.push_back(policy == nullptr ? seen : policy->rows());
  }
  return bytes;
}

}  // namespace assay
