// What a call leaves behind in its process: threads beyond a pool that waits for the next call, and children.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace assay {

// Made before the first call: the threads there are then are not the kernel's.
class Leftovers {
 public:
  Leftovers();
  // A pool of as many threads as a call may use is nobody's leftover; more is, and so is any child process.
  std::optional<std::string> found(int pool) const;

 private:
  std::size_t threads_;
};

}  // namespace assay
