#include "core/system/output_paths.h"

#include "core/system/file.h"

namespace assay {

void check_outputs(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (path.empty() || path == "-") continue;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    // A pipe's reader would take our look for the end of what we write.
    if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) continue;
    const AtomicFile probe{fs::path(path)};
  }
}

void write_whole(const fs::path& path, std::string_view text) {
  if (path.empty()) return;
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace assay
