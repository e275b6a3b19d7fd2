#include "verify/state.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::int64_t kSaveEvery = 5'000'000'000;  // ns
// A file written within one tick of the clock that stamps it may change again and keep its stamps (git calls
// such an entry "racily clean"). Linux ticks are 10 ms or less.
constexpr std::int64_t kQuiet = 20'000'000;  // ns

std::string key_of(const fs::path& path, DigestKind kind) {
  return fs::absolute(path).lexically_normal().string() + "#" + std::string(Digest{kind, {}}.kind_name());
}

}  // namespace

std::int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A read lease is granted only where nobody writes; it is given back at once. Should somebody open the file
// in that moment, the kernel tells us by a signal: one that is ignored unless asked for.
bool is_open_for_writing(const fs::path& path) {
  try {
    const File file = File::open(path);
    ::fcntl(file.descriptor(), F_SETSIG, SIGURG);
    if (::fcntl(file.descriptor(), F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN || errno == EBUSY;
    ::fcntl(file.descriptor(), F_SETLEASE, F_UNLCK);
    return false;
  } catch (const Error&) {
    return false;  // told by whoever reads it
  }
}

VerifyState::VerifyState(fs::path file) : file_(std::move(file)) {
  if (!fs::exists(file_)) return;
  try {
    entries_ = read_state_file(file_);
  } catch (Error& error) {
    throw error.remedy("delete it to start over");
  }
}

std::optional<StateEntry> VerifyState::find(const fs::path& path, const FileIdentity& now,
                                            DigestKind kind) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key_of(path, kind));
  if (it == entries_.end() || it->second.identity != now) return std::nullopt;
  return it->second;
}

void VerifyState::record(const fs::path& path, StateEntry entry, std::int64_t hash_started_ns) {
  const bool written_to = is_open_for_writing(path);
  const std::lock_guard lock(mutex_);
  const std::string key = key_of(path, entry.digest.kind);
  const std::int64_t touched = std::max(entry.identity.mtime_ns, entry.identity.ctime_ns);
  if (written_to || touched + kQuiet > hash_started_ns) {
    entries_.erase(key);
  } else {
    entries_.insert_or_assign(key, std::move(entry));
  }
}

void VerifyState::save() {
  const std::lock_guard lock(mutex_);
  last_save_ns_ = wall_clock_ns();
  try {
    write_state_file(file_, entries_);
    failure_.clear();
  } catch (const Error& error) {
    failure_ = error.message();
  }
}

void VerifyState::save_occasionally() {
  {
    const std::lock_guard lock(mutex_);
    if (wall_clock_ns() - last_save_ns_ < kSaveEvery) return;
  }
  save();
}

}  // namespace assay
