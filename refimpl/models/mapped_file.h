// A file's bytes as memory: pages come in as they are touched, unless the cache has them, and may be dropped
// again.
//
// A file that is cut short while it is mapped (another download, a full disk) has pages that nobody can bring
// in: whoever touches one, in whatever thread, gets the signal SIGBUS. Here such pages become zeros, the
// computation goes on, and what it made is thrown away: require_mapped() says which file it was.
#pragma once

#include <cstddef>
#include <span>

#include "core/system/file.h"
#include "core/system/lasting_memory.h"

namespace assay {

class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const File& file() const { return file_; }

 private:
  File file_;
  std::span<const std::byte> bytes_;
  LastingMemory lasting_;  // they, for whoever keeps copies
  std::size_t place_;      // among the mappings the signal handler knows
};

// Throws Error::input where some mapped file could not be read: what was computed of it is no result. To be
// asked before numbers are handed on; costs a load.
void require_mapped();

}  // namespace assay
