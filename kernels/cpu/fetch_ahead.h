// Memory that is read once, in order, as fast as it comes: rows of weights while a token or a few are decoded. What the
// processor fetches by itself ends with a page, and falls behind where two threads read.
#pragma once

#include <hwy/base.h>

#include <cstddef>

namespace assay::cpu {

// Ahead of what is read, and to the second-level cache: into the nearest, whose few misses under way then all are such
// fetches, a thread of a Zen 4 reads slower than without (docs/benchmarks.md).
inline constexpr std::size_t kFetchedAhead = 8192;

HWY_INLINE void fetch_ahead(const void* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(static_cast<const std::byte*>(at) + kFetchedAhead + i, 0, 2);
}

}  // namespace assay::cpu
