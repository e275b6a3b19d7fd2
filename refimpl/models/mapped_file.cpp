#include "refimpl/models/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "core/system/error.h"

namespace assay {

MappedFile::MappedFile(const fs::path& path) : file_(File::open(path)) {
  if (file_.size() == 0) return;
  void* start = ::mmap(nullptr, file_.size(), PROT_READ, MAP_PRIVATE, file_.descriptor(), 0);
  if (start == MAP_FAILED) throw Error::from_errno("cannot map into memory", errno).in(path);
  bytes_ = {static_cast<const std::byte*>(start), file_.size()};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace assay
