// `--state FILE`: what was hashed before, so that an interrupted run continues and a later one re-hashes only
// what changed. A digest is believed only while device, inode, size, mtime and ctime are all as they were
// when the file was hashed; only if the file had been quiet long enough then for its time stamps to tell; and
// only if nobody had it open for writing: a page that is mapped and dirty can be written again without any
// stamp changing.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "verify/state_file.h"

namespace assay {

// Nanoseconds since 1970, as file systems stamp files.
std::int64_t wall_clock_ns();

// Whether some process has the file open, or mapped, for writing, as far as the kernel tells: it answers for
// the caller's own files on local file systems, and where it does not the answer is no.
bool is_open_for_writing(const fs::path& path);

class VerifyState {
 public:
  // Reads `file` if it exists.
  explicit VerifyState(fs::path file);

  std::optional<StateEntry> find(const fs::path& path, const FileIdentity& now, DigestKind kind) const;
  void record(const fs::path& path, StateEntry entry, std::int64_t hash_started_ns);
  // Atomically. A state that cannot be written (a full disk) is worth a warning, not the hours of hashing.
  void save();
  void save_occasionally();  // at most every few seconds: after a crash little is lost
  // Why the last save failed; empty when it did not.
  const std::string& failure() const { return failure_; }

 private:
  fs::path file_;
  mutable std::mutex mutex_;
  StateEntries entries_;
  std::int64_t last_save_ns_ = 0;
  std::string failure_;
};

}  // namespace assay
