// `--state FILE`: what was hashed before, so that an interrupted run continues and a later one re-hashes only
// what changed. A digest is believed only while device, inode, size, mtime and ctime are all as they were
// when the file was hashed, and only if the file had been quiet long enough then for its time stamps to tell.
//
//   {"schema": "assay.verify-state/1", "files": {"<absolute path>": {"size":…, "mtime_ns":…, "ctime_ns":…,
//   "inode":…,
//     "device":…, "digests": {"sha256": "…"}, "tensors": […], "tool": "0.1.0"}}}
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/formats/digest.h"
#include "core/system/file.h"
#include "core/system/report.h"

namespace assay {

// Nanoseconds since 1970, as file systems stamp files.
std::int64_t wall_clock_ns();

class VerifyState {
 public:
  struct Entry {
    FileIdentity identity;
    Digest digest;
    Json tensors;  // what --numbers / --tensor-digests found; null when they were not asked for
    bool numbers = false, tensor_digests = false;
  };

  // Reads `file` if it exists. A damaged state is refused with an Error: silently starting over would hide
  // it.
  explicit VerifyState(fs::path file);

  std::optional<Entry> find(const fs::path& path, const FileIdentity& now, DigestKind kind) const;
  void record(const fs::path& path, Entry entry, std::int64_t hash_started_ns);
  void save() const;         // atomically
  void save_occasionally();  // at most every few seconds: after a crash little is lost

 private:
  fs::path file_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // key: absolute path + "#" + digest kind
  std::int64_t last_save_ns_ = 0;
};

}  // namespace assay
