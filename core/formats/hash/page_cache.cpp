#include "core/formats/hash/page_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

namespace assay {
namespace {

// Not yet in the C library's headers; the number is the same on every architecture.
constexpr long kCachestat = 451;
struct CachestatRange {
  std::uint64_t offset, length;
};
struct Cachestat {
  std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::optional<std::uint64_t> cached_pages(int descriptor, std::uint64_t offset, std::uint64_t length) {
  CachestatRange range{offset, length};
  Cachestat found{};
  if (::syscall(kCachestat, descriptor, &range, &found, 0U) != 0) return std::nullopt;
  return found.cached;
}

// Some kernels begin to read what RWF_NOWAIT did not find; the advice keeps that to the one page.
bool page_is_cached(int descriptor, std::uint64_t offset) {
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
  std::byte byte;
  iovec target{&byte, 1};
  return ::preadv2(descriptor, &target, 1, static_cast<off_t>(offset), RWF_NOWAIT) == 1;
}

}  // namespace

CacheShare cache_share(int descriptor, std::uint64_t offset, std::uint64_t length) {
  if (const auto cached = cached_pages(descriptor, offset, length)) {
    const std::uint64_t pages = (offset + length - 1) / page_size() - offset / page_size() + 1;
    return *cached == 0 ? CacheShare::none : *cached >= pages ? CacheShare::all : CacheShare::some;
  }
  int hits = 0;
  for (const std::uint64_t at : {offset, offset + length / 2, offset + length - 1}) {
    if (page_is_cached(descriptor, at)) ++hits;
  }
  return hits == 0 ? CacheShare::none : hits == 3 ? CacheShare::all : CacheShare::some;
}

void drop_from_cache(int descriptor, std::uint64_t offset, std::uint64_t length) {
  ::posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_DONTNEED);
}

int open_uncached(const File& file) {
#ifdef O_DIRECT
  const int descriptor = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_DIRECT);
  if (descriptor < 0) return -1;
  struct stat s {};
  // The name may point elsewhere by now.
  if (::fstat(descriptor, &s) == 0 && s.st_dev == file.identity().device &&
      s.st_ino == file.identity().inode) {
    return descriptor;
  }
  ::close(descriptor);
#endif
  return -1;
}

}  // namespace assay
