// What of a file lies in the page cache, and how to read the rest without filling the cache with it.
#pragma once

#include <cstdint>

#include "core/system/file.h"

namespace assay {

enum class CacheShare { none, some, all };

// Of the pages of [offset, offset + length). Asks cachestat(2) (Linux 6.5), else probes single pages with
// preadv2(RWF_NOWAIT), which does not wait for the disk.
CacheShare cache_share(int descriptor, std::uint64_t offset, std::uint64_t length);

// Clean pages of the range leave the cache.
void drop_from_cache(int descriptor, std::uint64_t offset, std::uint64_t length);

// A second descriptor of the same file that bypasses the cache (O_DIRECT), or -1 where the file system
// refuses.
int open_uncached(const File& file);
inline constexpr std::size_t kDirectAlignment = 4096;  // of offset, address and length of such reads

}  // namespace assay
