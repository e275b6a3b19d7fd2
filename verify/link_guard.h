// Names below a root whose links lead out of it: what would be read is not what was asked about.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/system/file.h"

namespace assay {

class LinkGuard {
 public:
  explicit LinkGuard(const fs::path& root);

  // Where `path` really lies, if that is not below the root. `is_link`: its last part is one. Where the
  // source itself resolved the name (a hub cache's ../../blobs), `path` does not lie below the root to begin
  // with. Folders are asked once. From any thread.
  std::optional<fs::path> leads_out(const fs::path& path, bool is_link);

 private:
  bool is_inside(const std::string& folder);

  std::string root_;  // as it is spelled, with a slash at its end
  fs::path real_root_;
  std::mutex mutex_;
  std::unordered_map<std::string, bool> folders_;  // is it inside?
};

bool is_below(const fs::path& path, const fs::path& root);

}  // namespace assay
