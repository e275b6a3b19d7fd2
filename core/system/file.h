// Files, read with suspicion and written whole.
//
// Reading: only regular files are opened (never a FIFO or device that would hang), and a file's identity is
// kept so that a change under our hands is noticed. Writing: a temporary beside the target, fsync, rename.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct stat;

namespace assay {

namespace fs = std::filesystem;

// Two equal identities: the same bytes, as far as the file system will tell.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
FileIdentity identity_of(const struct ::stat& s);

class File {
 public:
  // Follows symbolic links, refuses everything but a regular file. Throws Error::io / Error::input.
  static File open(const fs::path& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const fs::path& path() const { return path_; }
  std::uint64_t size() const { return identity_.size; }       // when opened
  const FileIdentity& identity() const { return identity_; }  // when opened
  FileIdentity identity_now() const;                          // fstat again
  int descriptor() const { return descriptor_; }

  // Fills `out` from `offset`; fewer bytes only at the end of the file. Retries EINTR.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const;
  // As above, but a short read is Error::input("file ends N bytes early").
  void read_exactly(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  File(fs::path path, int descriptor, FileIdentity identity);
  fs::path path_;
  int descriptor_ = -1;
  FileIdentity identity_;
};

// A folder or a link to one; no where that cannot be found out.
bool is_folder(const fs::path& path);

// The whole file, which must not exceed `limit` bytes (a config, an index: never a weight file).
std::string read_small_file(const fs::path& path, std::uint64_t limit);

// Writes to a temporary_name() in the target's folder; commit() makes it durable under its final name.
// Destroyed without commit(), it removes the temporary. A link is followed; a device or pipe is written
// directly.
class AtomicFile {
 public:
  explicit AtomicFile(fs::path target);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  // Sets the length, and takes the room for it at once where the file system offers that: a disk too small is
  // known before the work, and pages are written for less. What is not written reads as zeros.
  void reserve(std::uint64_t bytes);
  int descriptor() const { return descriptor_; }
  const fs::path& temporary() const { return temporary_; }
  void commit();  // fsync, rename, fsync of the folder

 private:
  fs::path target_, temporary_;
  int descriptor_ = -1;
};

// A file that is written over several runs of the program, under a name of its own until publish(). What has
// been written stays when it is destroyed.
class ResumableFile {
 public:
  explicit ResumableFile(fs::path path);  // creates it, or takes up what is there
  ResumableFile(const ResumableFile&) = delete;
  ResumableFile& operator=(const ResumableFile&) = delete;
  ~ResumableFile();

  const fs::path& path() const { return path_; }
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void read_exactly(std::uint64_t offset, std::span<std::byte> out) const;
  void sync();
  void publish(const fs::path& target);  // fsync, rename, fsync of the folder

 private:
  fs::path path_;
  int descriptor_ = -1;
};

// Every entry below `root`, relative with '/' separators, sorted. Folders are entered, symbolic links are
// listed but never followed, folders named in `skip_folders` (relative to root) left out. Unreadable folders
// are listed with `unreadable` set and the walk goes on.
struct TreeEntry {
  std::string name;  // relative to root
  enum class Kind { regular, link, other, unreadable } kind;
  std::uint64_t size = 0;  // of a regular file
};
std::vector<TreeEntry> list_tree(const fs::path& root, std::span<const std::string_view> skip_folders = {});

// A name taken from a manifest, index or header is used as a path below a root only if this holds:
// not empty, not absolute, no drive, no NUL or backslash, no "." or ".." segment, under POSIX and Windows
// rules.
bool is_safe_relative_path(std::string_view name);

}  // namespace assay
