#include "refimpl/models/mapped_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/system/error.h"

namespace assay {
namespace {

// What the signal handler may look at: no lock, no memory of its own. A place whose `begin` is 0 is free.
// More mappings than places go without the handler's help.
struct Mapping {
  std::atomic<std::uintptr_t> begin = 0, end = 0;
  std::atomic<bool> broken = false;
};
constexpr std::size_t kMostMappings = 4096, kNoPlace = kMostMappings;
Mapping mappings[kMostMappings];
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

std::atomic<bool> any_broken = false;

// Whose mappings they are, place by place: for messages, and never looked at by the handler.
struct Listed {
  fs::path path;
  std::uint64_t size = 0;
};
std::mutex list_mutex;
std::vector<Listed>& listed() {
  static std::vector<Listed> all(kMostMappings);
  return all;
}

std::uintptr_t page_mask() {
  static const auto mask = ~(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)) - 1);
  return mask;
}

// Zeros from the page touched to the end of its mapping. Any other SIGBUS is as fatal as ever.
void put_zeros(int, siginfo_t* info, void*) {
  const int kept = errno;
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Mapping& mapping : mappings) {
    const std::uintptr_t begin = mapping.begin, end = mapping.end;
    if (begin == 0 || at < begin || at >= end) continue;
    const std::uintptr_t into_page = at & ~page_mask();
    void* const page = static_cast<char*>(info->si_addr) - into_page;
    void* const zeros =
        ::mmap(page, end - at + into_page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) break;
    mapping.broken = true;
    any_broken = true;
    errno = kept;
    return;
  }
  ::signal(SIGBUS, SIG_DFL);  // the instruction is tried again, and ends the process
}

void install_handler() {
  static const bool installed = [] {
    page_mask();
    struct sigaction action = {};
    action.sa_sigaction = put_zeros;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  static_cast<void>(installed);
}

std::size_t enlist(std::span<const std::byte> bytes, const fs::path& path) {
  const std::lock_guard lock(list_mutex);
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  for (std::size_t i = 0; i < kMostMappings; ++i) {
    if (mappings[i].begin != 0) continue;
    mappings[i].broken = false;
    mappings[i].end = (begin + bytes.size() + ~page_mask()) & page_mask();
    listed()[i] = {path, bytes.size()};
    mappings[i].begin = begin;
    return i;
  }
  return kNoPlace;
}

// What the page cache has already is mapped at once: a model's weights would else be some hundred thousand
// faults, those of experts in the middle of a text. Nothing is read for it; where the cache ends, it ends.
void map_cached(std::span<const std::byte> bytes) {
#ifdef MADV_POPULATE_READ
  constexpr std::size_t kStep = 64 << 20, kPage = 4096;  // mincore() fills a byte a page, which has no less
  std::vector<unsigned char> pages(kStep / kPage);
  for (std::size_t at = 0; at < bytes.size(); at += kStep) {
    const std::size_t count = std::min(kStep, bytes.size() - at);
    void* const start = const_cast<std::byte*>(bytes.data()) + at;
    std::fill(pages.begin(), pages.end(), static_cast<unsigned char>(1));
    if (::mincore(start, count, pages.data()) != 0) return;
    if (std::any_of(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) == 0; })) return;
    if (::madvise(start, count, MADV_POPULATE_READ) != 0) return;
  }
#else
  static_cast<void>(bytes);
#endif
}

}  // namespace

MappedFile::MappedFile(const fs::path& path) : file_(File::open(path)), place_(kNoPlace) {
  if (file_.size() == 0) return;
  install_handler();
  void* start = ::mmap(nullptr, file_.size(), PROT_READ, MAP_PRIVATE, file_.descriptor(), 0);
  if (start == MAP_FAILED) throw Error::from_errno("map into memory", errno).in(path);
  bytes_ = {static_cast<const std::byte*>(start), file_.size()};
  lasting_ = LastingMemory(bytes_);
  place_ = enlist(bytes_, path);
  map_cached(bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : file_(std::move(other.file_)),
      bytes_(std::exchange(other.bytes_, {})),
      lasting_(std::move(other.lasting_)),
      place_(std::exchange(other.place_, kNoPlace)) {}

MappedFile::~MappedFile() {
  lasting_ = {};  // before another mapping can take its place
  if (place_ != kNoPlace) mappings[place_].begin = 0;
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void require_mapped() {
  if (!any_broken) return;
  const std::lock_guard lock(list_mutex);
  for (std::size_t i = 0; i < kMostMappings; ++i) {
    if (mappings[i].begin == 0 || !mappings[i].broken) continue;
    std::error_code unknown;
    const std::uint64_t now = fs::file_size(listed()[i].path, unknown);
    const bool shorter = !unknown && now < listed()[i].size;
    throw Error::input(
        shorter ? fmt::format("was cut to {} of its {} bytes while it was read", now, listed()[i].size)
                : "could not be read any more while it was in use")
        .in(listed()[i].path)
        .remedy("wait until whatever writes the file is done, verify it, and start again");
  }
}

}  // namespace assay
