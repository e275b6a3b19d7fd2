#include "refimpl/models/mapped_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "core/system/error.h"

namespace assay {
namespace {

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

MappedFile::MappedFile(const fs::path& path) : file_(File::open(path)) {
  if (file_.size() == 0) return;
  void* start = ::mmap(nullptr, file_.size(), PROT_READ, MAP_PRIVATE, file_.descriptor(), 0);
  if (start == MAP_FAILED) throw Error::from_errno("cannot map into memory", errno).in(path);
  bytes_ = {static_cast<const std::byte*>(start), file_.size()};
  map_cached(bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace assay
