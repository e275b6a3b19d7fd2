#include "refimpl/handoff/part_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "core/system/error.h"
#include "core/system/temporary_name.h"
#include "core/system/threads.h"
#include "refimpl/block_store/block_file.h"
#include "refimpl/handoff/handoff_part.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".handoff";
constexpr std::size_t kDigits = 8;
constexpr Patience kLook{2}, kForLock{1000};

std::string part_name(std::uint64_t serial) {
  return fmt::format("{:0{}}{}", serial, kDigits, kEnding);
}

bool is_part_name(std::string_view name) {
  if (name.size() != kDigits + kEnding.size() || !name.ends_with(kEnding)) return false;
  return std::all_of(name.begin(), name.begin() + kDigits, [](char c) { return c >= '0' && c <= '9'; });
}

// Files and links of these names, never a folder.
void remove_parts(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_part_name(entry->path().filename().string())) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());  // the ticket first: what is left begins with nothing
  for (const fs::path& path : found) ::unlink(path.c_str());
}

}  // namespace

std::optional<FolderLock> FolderLock::take(const fs::path& folder, Kind kind) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  FolderLock lock(descriptor);
  if (::flock(descriptor, (kind == Kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) return std::nullopt;
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}
FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

PartFolderSink::PartFolderSink(fs::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!fs::is_directory(folder_, error))
    throw Error::io("is no folder, and none can be made").in(folder_).remedy("give another folder");
  const auto until = HandoffClock::now() + kForLock;
  while (!(lock_ = FolderLock::take(folder_, FolderLock::Kind::exclusive))) {
    if (HandoffClock::now() > until)
      throw Error::io("another process writes a hand-off here, or takes one").in(folder_);
    std::this_thread::sleep_for(kLook);
  }
  temporary_ = temporary_name(folder_ / "handoff");  // and those of processes that are gone
  ::unlink(temporary_.c_str());
  remove_parts(folder_);
}

PartFolderSink::~PartFolderSink() {
  if (!closed_) remove_parts(folder_);
}

void PartFolderSink::put(std::uint64_t serial, std::span<const std::byte> part) {
  if (!write_block_file(temporary_, folder_ / part_name(serial), part))
    throw Error::from_errno("write a part of a hand-off", errno).in(folder_);
}

PartFolderSource::PartFolderSource(fs::path folder, Patience patience)
    : folder_(std::move(folder)), patience_(patience) {}

std::vector<std::byte> PartFolderSource::next(std::uint64_t serial) {
  const fs::path path = folder_ / part_name(serial);
  const auto until = HandoffClock::now() + patience_;
  for (;;) {
    // The lock is asked for before the part: a writer that ends in between has written it.
    if (!lock_) lock_ = FolderLock::take(folder_, FolderLock::Kind::shared);
    BlockFileRead read = read_block_file(path, 1, kPartHeaderBytes + kMostPartBytes + kDigestBytes);
    if (read.found == BlockFileRead::Found::whole) {
      if (serial == 0) ticket_ = read.bytes;
      return std::move(read.bytes);
    }
    if (read.found == BlockFileRead::Found::unfit)
      throw Error::input("is no part of a hand-off, but a link, something not a file, or empty").in(path);
    if (serial > 0 && lock_) throw Error::io("the prefill ended before its hand-off was whole").in(folder_);
    lock_.reset();
    if (interrupted()) throw Error::io("the hand-off was interrupted");
    if (HandoffClock::now() > until)
      throw Error::io(serial == 0 ? "no hand-off began here" : "nothing more of the hand-off came")
          .in(folder_)
          .remedy("start the prefill, or give it more time with --handoff-timeout");
    std::this_thread::sleep_for(kLook);
  }
}

void PartFolderSource::done() {
  const auto until = HandoffClock::now() + kForLock;
  while (!lock_ && HandoffClock::now() < until) {  // the writer is about to end
    lock_ = FolderLock::take(folder_, FolderLock::Kind::shared);
    std::this_thread::sleep_for(kLook);
  }
  // Another hand-off may have been written there by now.
  const BlockFileRead first = read_block_file(folder_ / part_name(0), ticket_.size(), ticket_.size());
  if (lock_ && first.bytes == ticket_) remove_parts(folder_);
}

}  // namespace assay
