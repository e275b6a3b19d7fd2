#include "refimpl/block_store/block_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace assay {
namespace {

// A descriptor that is closed.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

bool read_all(int descriptor, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::read(descriptor, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

bool write_block_file(const std::filesystem::path& temporary, const std::filesystem::path& target,
                      std::span<const std::byte> bytes) {
  OpenFile file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return false;
  if (write_all(file.get(), bytes) && file.close() && ::rename(temporary.c_str(), target.c_str()) == 0)
    return true;
  const int why = errno;
  ::unlink(temporary.c_str());
  errno = why;
  return false;
}

BlockFileReader::BlockFileReader(const std::filesystem::path& path, std::uint64_t least, std::uint64_t most)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) {
  if (descriptor_ < 0 && errno == ENOENT) return;
  struct ::stat status {};
  const bool regular = descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  size_ = static_cast<std::uint64_t>(status.st_size);
  const bool fits = regular && size_ >= least && size_ <= most;
  found_ = fits ? BlockFileRead::Found::whole : BlockFileRead::Found::unfit;
}

BlockFileReader::~BlockFileReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool BlockFileReader::read(std::span<std::byte> bytes) {
  return read_all(descriptor_, bytes);
}

BlockFileRead read_block_file(const std::filesystem::path& path, std::uint64_t least, std::uint64_t most) {
  BlockFileReader reader(path, least, most);
  BlockFileRead read{reader.found(), {}};
  if (read.found != BlockFileRead::Found::whole) return read;
  read.bytes.resize(reader.size());
  if (!reader.read(read.bytes)) read.found = BlockFileRead::Found::unfit;
  return read;
}

}  // namespace assay
