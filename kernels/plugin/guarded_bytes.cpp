#include "kernels/plugin/guarded_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/system/error.h"

namespace assay {
namespace {

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Mappings by number; of more than fit, the later ones go unnamed.
struct Place {
  std::atomic<std::uintptr_t> begin{0}, guard{0};
  std::atomic<bool> writable{false};
};
std::array<Place, 512> places;

void note(std::uintptr_t begin, std::uintptr_t guard, bool writable) {
  for (Place& place : places) {
    std::uintptr_t free = 0;
    if (!place.begin.compare_exchange_strong(free, begin)) continue;
    place.writable = writable;
    place.guard = guard;
    return;
  }
}

void forget(std::uintptr_t begin) {
  for (Place& place : places) {
    if (place.begin != begin) continue;
    place.guard = 0;
    place.begin = 0;
    return;
  }
}

}  // namespace

GuardedBytes::GuardedBytes(const void* source, std::size_t size, bool writable)
    : size_(size), writable_(writable) {
  const std::size_t page = page_size(), body = (size + page - 1) / page * page;
  mapped_ = body + page;
  void* map = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw Error::from_errno("allocate memory to marshal", errno);
  map_ = static_cast<std::byte*>(map);
  data_ = map_ + (body - size);
  std::memset(map_, static_cast<int>(kPattern), body);
  if (source != nullptr) std::memcpy(data_, source, size);
  mprotect(map_ + body, page, PROT_NONE);
  if (!writable && body != 0) mprotect(map_, body, PROT_READ);
  note(reinterpret_cast<std::uintptr_t>(map_), reinterpret_cast<std::uintptr_t>(map_ + body), writable);
}

GuardedBytes::GuardedBytes(GuardedBytes&& other) noexcept
    : map_(std::exchange(other.map_, nullptr)),
      data_(other.data_),
      mapped_(other.mapped_),
      size_(other.size_),
      writable_(other.writable_) {}

GuardedBytes::~GuardedBytes() {
  if (map_ == nullptr) return;
  forget(reinterpret_cast<std::uintptr_t>(map_));
  munmap(map_, mapped_);
}

void GuardedBytes::rewrite(const std::function<void(std::span<std::byte>)>& change) {
  const std::size_t body = mapped_ - page_size();
  if (body == 0) return;
  if (!writable_) mprotect(map_, body, PROT_READ | PROT_WRITE);
  change({data_, size_});
  if (!writable_) mprotect(map_, body, PROT_READ);
}

bool GuardedBytes::intact() const {
  for (const std::byte* p = map_; p < data_; ++p) {
    if (*p != kPattern) return false;
  }
  return true;
}

const char* guarded_place(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const Place& place : places) {
    const std::uintptr_t begin = place.begin, guard = place.guard;
    if (begin == 0 || guard == 0 || at < begin || at >= guard + page_size()) continue;
    if (at >= guard) return "behind the end of memory that was operand to it";
    return place.writable ? nullptr : "in an argument, which may only be read";
  }
  return nullptr;
}

}  // namespace assay
