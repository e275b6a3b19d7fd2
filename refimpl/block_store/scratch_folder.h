// A folder of its own, with what lies in it gone at the end.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "core/system/error.h"

namespace assay {

class ScratchFolder {
 public:
  ScratchFolder() : path_((std::filesystem::temp_directory_path() / "assay-blocks-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      throw Error::from_errno("make a folder for blocks", errno).in(std::filesystem::temp_directory_path());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace assay
