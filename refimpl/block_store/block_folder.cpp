#include "refimpl/block_store/block_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/system/error.h"
#include "core/system/temporary_name.h"
#include "refimpl/block_store/block_file.h"
#include "refimpl/block_store/block_name.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".block";

}  // namespace

BlockFolder::BlockFolder(fs::path folder, std::uint64_t most_bytes, Told told)
    : folder_(std::move(folder)),
      temporary_(temporary_name(folder_ / "block")),
      files_(most_bytes),
      told_(std::move(told)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!fs::is_directory(folder_, error))
    throw Error::io("is no folder, and none can be made").in(folder_).remedy("give another --cache-dir");
  take_up();
}

void BlockFolder::take_up() {
  struct Found {
    fs::file_time_type used;
    std::string name;
    std::uint64_t bytes;
  };
  std::vector<Found> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!name.ends_with(kEnding)) continue;
    name.resize(name.size() - kEnding.size());
    if (!is_block_name(name)) continue;
    std::error_code gone;
    if (!fs::is_regular_file(entry->symlink_status(gone)) || gone) continue;
    const std::uint64_t bytes = entry->file_size(gone);
    const fs::file_time_type used = gone ? fs::file_time_type() : entry->last_write_time(gone);
    if (!gone) found.push_back({used, std::move(name), bytes});
  }
  if (error) throw Error::io(fmt::format("cannot be read: {}", error.message())).in(folder_);
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.used, a.name) < std::tie(b.used, b.name);
  });
  for (const Found& file : found) {
    const auto gone = [this](const std::string& name) { remove(name); };
    if (!files_.add(file.name, file.bytes, gone)) remove(file.name);
  }
}

bool BlockFolder::reserve(const std::string& name, std::uint64_t bytes,
                          const std::function<bool(const std::string&)>& spared) {
  return files_.add(
      name, bytes, [this](const std::string& old) { remove(old); }, spared);
}

void BlockFolder::put(const std::string& name, std::span<const std::byte> bytes) {
  if (!has(name)) return;  // its room was needed meanwhile
  if (!writing_) return files_.erase(name);
  if (write_block_file(temporary_, folder_ / (name + std::string(kEnding)), bytes)) return;
  const Error error = Error::from_errno("write a block", errno);
  files_.erase(name);
  writing_ = false;
  if (told_) told_(fmt::format("{}: {}; no more are kept", folder_.string(), error.message()));
}

std::unique_ptr<BlockFileReader> BlockFolder::open(const std::string& name, std::size_t bytes) {
  auto reader = std::make_unique<BlockFileReader>(folder_ / (name + std::string(kEnding)), bytes, bytes);
  switch (reader->found()) {
    case BlockFileRead::Found::whole: touch(name); return reader;
    case BlockFileRead::Found::nothing: files_.erase(name); return nullptr;  // another process has evicted it
    case BlockFileRead::Found::unfit: refuse(name); return nullptr;
  }
  return nullptr;
}

void BlockFolder::touch(const std::string& name) {
  files_.touch(name);
  // For later runs; where that cannot be noted, it counts as older than it is.
  const std::array<struct ::timespec, 2> now = {{{0, UTIME_NOW}, {0, UTIME_NOW}}};
  ::utimensat(AT_FDCWD, (folder_ / (name + std::string(kEnding))).c_str(), now.data(), AT_SYMLINK_NOFOLLOW);
}

void BlockFolder::refuse(const std::string& name) {
  files_.erase(name);
  remove(name);
  if (!refused_ && told_)
    told_(fmt::format("a block in {} was not what it should be, and is computed anew", folder_.string()));
  refused_ = true;
}

// A file or a link, never a folder.
void BlockFolder::remove(const std::string& name) {
  ::unlink((folder_ / (name + std::string(kEnding))).c_str());
}

}  // namespace assay
