#include "core/system/file_text.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <new>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;

// Not initialized.
char* memory_for_text(std::size_t bytes) {
  const bool large = bytes >= kLargePage / 2;
  const std::size_t room = large ? (bytes + kLargePage - 1) / kLargePage * kLargePage : bytes + 1;
  void* const memory = large ? std::aligned_alloc(kLargePage, room) : std::malloc(room);
  if (memory == nullptr) throw std::bad_alloc();
  if (large) ::madvise(memory, room, MADV_HUGEPAGE);  // refused: small pages, then
  return static_cast<char*>(memory);
}

}  // namespace

File open_small_file(const fs::path& path, std::uint64_t limit) {
  File file = File::open(path);
  if (file.size() > limit) {
    throw Error::input(fmt::format("is {} bytes long; at most {} are expected here", file.size(), limit))
        .in(path);
  }
  return file;
}

FileText::FileText(const fs::path& path, std::uint64_t limit) {
  const File file = open_small_file(path, limit);
  bytes_.reset(memory_for_text(file.size()));
  size_ = file.read_at(0, std::as_writable_bytes(std::span(bytes_.get(), file.size())));
}

}  // namespace assay
