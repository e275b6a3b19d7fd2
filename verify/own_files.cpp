#include "verify/own_files.h"

#include <sys/stat.h>
#include <unistd.h>

namespace assay {

OwnFiles::OwnFiles(std::span<const fs::path> named) {
  struct stat s {};
  for (const fs::path& path : named) {
    if (::stat(path.c_str(), &s) == 0) known_.emplace(s.st_dev, s.st_ino);
  }
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::fstat(stream, &s) == 0 && S_ISREG(s.st_mode)) known_.emplace(s.st_dev, s.st_ino);
  }
}

bool OwnFiles::contains(const fs::path& path) const {
  struct stat s {};
  return !known_.empty() && ::stat(path.c_str(), &s) == 0 && known_.contains({s.st_dev, s.st_ino});
}

}  // namespace assay
