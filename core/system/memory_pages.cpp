#include "core/system/memory_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace assay {

void forget_pages(void* begin, std::size_t bytes) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto from = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
  const auto to = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / page * page;
  // Where the system refuses, the memory stays until its owner ends: nothing else depends on it.
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace assay
