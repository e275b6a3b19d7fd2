// A small file's text, for those who look at it and keep nothing: memory is not written over before it is read into, and
// from a megabyte on lies in large pages where the system has them. A page of 4 KiB that is touched for the first time costs
// as much as reading several.
#pragma once

#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/system/file.h"

namespace assay {

// Throws Error::io, and Error::input for a file of more than `limit` bytes.
File open_small_file(const fs::path& path, std::uint64_t limit);

class FileText {
 public:
  // Throws as open_small_file.
  FileText(const fs::path& path, std::uint64_t limit);
  std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<char, Free> bytes_;
  std::size_t size_;
};

}  // namespace assay
