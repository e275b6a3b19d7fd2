#include "core/system/lasting_memory.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace assay {
namespace {

struct Held {
  std::size_t bytes = 0;
  std::uint64_t number = 0;
};

struct Ledger {
  std::mutex mutex;
  std::map<const std::byte*, Held> by_begin;  // none overlaps another
  std::uint64_t given = 0;
  std::atomic<std::uint64_t> returned = 0;
};
// Never taken down: what is told to it may be a static object's, which goes later.
Ledger& ledger() {
  static Ledger& all = *new Ledger;
  return all;
}

}  // namespace

LastingMemory::LastingMemory(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  Ledger& all = ledger();
  const std::lock_guard lock(all.mutex);
  all.by_begin[bytes.data()] = {bytes.size(), ++all.given};
  begin_ = bytes.data();
}

LastingMemory::LastingMemory(LastingMemory&& other) noexcept : begin_(std::exchange(other.begin_, nullptr)) {}

LastingMemory& LastingMemory::operator=(LastingMemory&& other) noexcept {
  std::swap(begin_, other.begin_);
  return *this;
}

LastingMemory::~LastingMemory() {
  if (begin_ == nullptr) return;
  Ledger& all = ledger();
  const std::lock_guard lock(all.mutex);
  all.by_begin.erase(begin_);
  ++all.returned;
}

std::uint64_t lasting_number(const void* begin, std::size_t bytes) {
  Ledger& all = ledger();
  const std::lock_guard lock(all.mutex);
  const auto* at = static_cast<const std::byte*>(begin);
  const auto next = all.by_begin.upper_bound(at);
  if (next == all.by_begin.begin()) return 0;
  const auto& [first, held] = *std::prev(next);
  const auto offset = static_cast<std::size_t>(at - first);
  return offset < held.bytes && bytes <= held.bytes - offset ? held.number : 0;
}

std::uint64_t lasting_memory_returned() {
  return ledger().returned;
}

bool still_lasts(std::uint64_t number) {
  Ledger& all = ledger();
  const std::lock_guard lock(all.mutex);
  return std::any_of(all.by_begin.begin(), all.by_begin.end(),
                     [number](const auto& entry) { return entry.second.number == number; });
}

}  // namespace assay
