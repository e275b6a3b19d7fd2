#include "verify/verify_report.h"

#include <algorithm>

namespace assay {

std::string_view status_name(FileStatus status) {
  switch (status) {
    case FileStatus::ok: return "ok";
    case FileStatus::failed: return "failed";
    case FileStatus::missing: return "missing";
    case FileStatus::extra: return "extra";
    case FileStatus::unchecked: return "unchecked";
    case FileStatus::unreadable: break;
  }
  return "unreadable";
}

std::uint64_t VerifyReport::count(FileStatus status) const {
  return static_cast<std::uint64_t>(
      std::count_if(files.begin(), files.end(), [&](const FileReport& f) { return f.status == status; }));
}

bool VerifyReport::good() const {
  const bool bad_file = std::any_of(files.begin(), files.end(), [](const FileReport& f) {
    return f.status == FileStatus::failed || f.status == FileStatus::missing ||
           f.status == FileStatus::unreadable;
  });
  return !bad_file && !interrupted && !stopped_early && !has_errors(findings);
}

}  // namespace assay
