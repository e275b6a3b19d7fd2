#include "core/system/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "core/system/error.h"
#include "core/system/file_text.h"
#include "core/system/temporary_name.h"
#include "core/system/tree_names.h"

namespace assay {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

const char* kind_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

void write_all_at(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes,
                  const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error::from_errno("write", errno).in(path).at(offset);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

std::size_t read_all_at(int descriptor, std::uint64_t offset, std::span<std::byte> out,
                        const fs::path& path) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(descriptor, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error::from_errno("read", errno).in(path).at(offset + done);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

[[noreturn]] void fail_early_end(const fs::path& path, std::uint64_t offset, std::size_t missing) {
  throw Error::input(fmt::format("file ends {} bytes early", missing)).in(path).at(offset);
}

void write_all(int descriptor, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw Error::from_errno("write", errno).in(path).remedy("free some space or choose another place");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;  // a folder we may write but not read: the rename stands, only its durability is unsure
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

FileIdentity identity_of(const struct ::stat& s) {
  return {.device = s.st_dev,
          .inode = s.st_ino,
          .size = static_cast<std::uint64_t>(s.st_size),
          .mtime_ns = s.st_mtim.tv_sec * kNanoseconds + s.st_mtim.tv_nsec,
          .ctime_ns = s.st_ctim.tv_sec * kNanoseconds + s.st_ctim.tv_nsec};
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

File File::open(const fs::path& path) {
  // O_NONBLOCK: opening a FIFO with no writer would otherwise wait for ever. No effect on regular files.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) throw Error::from_errno("open", errno).in(path);
  struct stat s {};
  if (::fstat(descriptor, &s) != 0) {
    const int error_number = errno;
    ::close(descriptor);
    throw Error::from_errno("stat", error_number).in(path);
  }
  if (!S_ISREG(s.st_mode)) {
    ::close(descriptor);
    throw Error::input(fmt::format("is {}, not a file", kind_name(s.st_mode))).in(path);
  }
  return File(path, descriptor, identity_of(s));
}

File::File(fs::path path, int descriptor, FileIdentity identity)
    : path_(std::move(path)), descriptor_(descriptor), identity_(identity) {}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      identity_(other.identity_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(identity_, other.identity_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileIdentity File::identity_now() const {
  struct stat s {};
  if (::fstat(descriptor_, &s) != 0) throw Error::from_errno("stat", errno).in(path_);
  return identity_of(s);
}

std::size_t File::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  return read_all_at(descriptor_, offset, out, path_);
}

void File::read_exactly(std::uint64_t offset, std::span<std::byte> out) const {
  const std::size_t n = read_at(offset, out);
  if (n != out.size()) fail_early_end(path_, offset + n, out.size() - n);
}

std::string read_small_file(const fs::path& path, std::uint64_t limit) {
  const File file = open_small_file(path, limit);
  std::string text(file.size(), '\0');
  const std::size_t n = file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  text.resize(n);
  return text;
}

namespace {

bool names_descriptor(const fs::path& path) {
  const std::string& name = path.native();
  return name == "/dev/stdout" || name == "/dev/stderr" || name.starts_with("/dev/fd/") ||
         name.starts_with("/proc/");
}

}  // namespace

AtomicFile::AtomicFile(fs::path target) : target_(std::move(target)) {
  struct stat s {};
  if (::stat(target_.c_str(), &s) == 0) {
    // A device or pipe (/dev/null, a process substitution, whatever /dev/stdout stands for) is written to;
    // renaming a file over it would destroy it.
    if (!S_ISREG(s.st_mode) || names_descriptor(target_)) {
      descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
      if (descriptor_ < 0) throw Error::from_errno("open for writing", errno).in(target_);
      return;
    }
    // Through a link, to the file it names: the link stays.
    if (fs::is_symlink(target_)) target_ = fs::canonical(target_);
  }
  temporary_ = temporary_name(target_);
  descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) throw Error::from_errno("create", errno).in(target_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write_all(descriptor_, bytes, target_);
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  write_all_at(descriptor_, offset, bytes, target_);
}

void AtomicFile::reserve(std::uint64_t bytes) {
  int done = 0;
  while ((done = ::fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes))) != 0 && errno == EINTR) {
  }
  if (done != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
    throw Error::from_errno(fmt::format("reserve {} bytes", bytes), errno).in(target_);
  if (done != 0 && ::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
    throw Error::from_errno("set the length", errno).in(target_);
}

void AtomicFile::commit() {
  if (temporary_.empty()) {  // a device or pipe: neither to be flushed to disk nor renamed
    if (::close(std::exchange(descriptor_, -1)) != 0) throw Error::from_errno("close", errno).in(target_);
    return;
  }
  if (::fsync(descriptor_) != 0) throw Error::from_errno("flush to disk", errno).in(target_);
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const int error_number = errno;
    ::unlink(temporary_.c_str());
    throw Error::from_errno("close", error_number).in(target_);
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error_number = errno;
    ::unlink(temporary_.c_str());
    throw Error::from_errno("rename the finished file into place", error_number).in(target_);
  }
  sync_folder(target_.has_parent_path() ? target_.parent_path() : fs::path("."));
}

ResumableFile::ResumableFile(fs::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) throw Error::from_errno("create", errno).in(path_);
}

ResumableFile::~ResumableFile() {
  ::close(descriptor_);
}

void ResumableFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  write_all_at(descriptor_, offset, bytes, path_);
}

void ResumableFile::read_exactly(std::uint64_t offset, std::span<std::byte> out) const {
  const std::size_t n = read_all_at(descriptor_, offset, out, path_);
  if (n != out.size()) fail_early_end(path_, offset + n, out.size() - n);
}

void ResumableFile::sync() {
  if (::fsync(descriptor_) != 0) throw Error::from_errno("flush to disk", errno).in(path_);
}

void ResumableFile::publish(const fs::path& target) {
  sync();
  if (::rename(path_.c_str(), target.c_str()) != 0)
    throw Error::from_errno("rename the finished file into place", errno).in(target);
  sync_folder(target.has_parent_path() ? target.parent_path() : fs::path("."));
}

namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

TreeEntry entry_of(std::string name, int folder, const char* base) {
  struct stat s {};
  if (::fstatat(folder, base, &s, AT_SYMLINK_NOFOLLOW) != 0)
    return {std::move(name), TreeEntry::Kind::unreadable};
  if (S_ISLNK(s.st_mode)) return {std::move(name), TreeEntry::Kind::link};
  if (S_ISREG(s.st_mode))
    return {std::move(name), TreeEntry::Kind::regular, static_cast<std::uint64_t>(s.st_size)};
  return {std::move(name), TreeEntry::Kind::other};
}

// What the folder itself says of an entry. Where its entries cannot be looked at (a folder without the right to
// search it) it is asked for each all the same: they are unreadable then.
class KindInFolder {
 public:
  explicit KindInFolder(int folder) : folder_(folder) {
    struct stat s {};
    searchable_ = ::fstatat(folder, ".", &s, 0) == 0;
  }
  TreeEntry entry(std::string name, const dirent& found) const {
    if (searchable_ && found.d_type == DT_REG) return {std::move(name), TreeEntry::Kind::regular};
    if (searchable_ && found.d_type == DT_LNK) return {std::move(name), TreeEntry::Kind::link};
    TreeEntry asked = entry_of(std::move(name), folder_, found.d_name);
    asked.size = 0;
    return asked;
  }

 private:
  int folder_;
  bool searchable_;
};

bool is_folder(int folder, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat s {};
  return ::fstatat(folder, entry.d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode);
}

void walk(const fs::path& root, std::span<const std::string_view> skip_folders, bool with_sizes,
          const std::function<void(TreeEntry&&)>& visit) {
  std::vector<std::string> pending = {""};  // folders still to list, relative to root
  while (!pending.empty()) {
    const std::string folder = std::move(pending.back());
    pending.pop_back();
    const std::unique_ptr<DIR, CloseFolder> open(::opendir((root / folder).c_str()));
    if (open == nullptr) {
      visit({folder, TreeEntry::Kind::unreadable});
      continue;
    }
    const KindInFolder kinds(::dirfd(open.get()));
    while (const dirent* found = ::readdir(open.get())) {
      const std::string_view base = found->d_name;
      if (base == "." || base == "..") continue;
      std::string name = folder.empty() ? std::string(base) : folder + "/" + std::string(base);
      if (!is_folder(::dirfd(open.get()), *found)) {
        visit(with_sizes ? entry_of(std::move(name), ::dirfd(open.get()), found->d_name)
                         : kinds.entry(std::move(name), *found));
      } else if (std::find(skip_folders.begin(), skip_folders.end(), name) == skip_folders.end()) {
        pending.push_back(std::move(name));
      }
    }
  }
}

std::vector<TreeEntry> sorted_walk(const fs::path& root, std::span<const std::string_view> skip_folders,
                                   bool with_sizes) {
  std::vector<TreeEntry> entries;
  walk(root, skip_folders, with_sizes, [&](TreeEntry&& entry) { entries.push_back(std::move(entry)); });
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

}  // namespace

std::vector<TreeEntry> list_tree(const fs::path& root, std::span<const std::string_view> skip_folders) {
  return sorted_walk(root, skip_folders, true);
}

std::vector<TreeEntry> list_names(const fs::path& root, std::span<const std::string_view> skip_folders) {
  return sorted_walk(root, skip_folders, false);
}

void visit_names(const fs::path& root, std::span<const std::string_view> skip_folders,
                 const std::function<void(TreeEntry&&)>& visit) {
  walk(root, skip_folders, false, visit);
}

bool is_safe_relative_path(std::string_view name) {
  if (name.empty() || name.front() == '/') return false;
  if (name.find('\\') != std::string_view::npos || name.find('\0') != std::string_view::npos) return false;
  if (name.size() >= 2 && name[1] == ':') return false;  // a Windows drive
  while (true) {
    const auto slash = name.find('/');
    const std::string_view segment = name.substr(0, slash);
    if (segment.empty() || segment == "." || segment == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

}  // namespace assay
