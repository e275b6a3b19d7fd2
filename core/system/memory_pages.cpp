#include "core/system/memory_pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace assay {

void forget_pages(void* begin, std::size_t bytes) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t skipped = (page - address % page) % page;  // to the first whole page
  if (bytes <= skipped) return;
  const std::uintptr_t whole = (bytes - skipped) / page * page;
  // Where the system refuses, the memory stays until its owner ends: nothing else depends on it.
  if (whole > 0) ::madvise(static_cast<std::byte*>(begin) + skipped, whole, MADV_DONTNEED);
}

void give_back_what_is_freed() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

}  // namespace assay
