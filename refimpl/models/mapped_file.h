// A file's bytes as memory: pages come in as they are touched, and may be dropped again.
#pragma once

#include <cstddef>
#include <span>

#include "core/system/file.h"

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
};

}  // namespace assay
