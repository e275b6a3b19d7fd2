#include "convert/copy_range.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::uint64_t kBuffer = 1 << 20;

bool not_offered(int error_number) {
  return error_number == EXDEV || error_number == EINVAL || error_number == ENOSYS ||
         error_number == EOPNOTSUPP;
}

void copy_through_memory(const File& from, std::uint64_t from_offset, AtomicFile& to, std::uint64_t to_offset,
                         std::uint64_t bytes) {
  std::vector<std::byte> buffer(std::min(bytes, kBuffer));
  while (bytes > 0) {
    const auto piece = std::span(buffer).first(std::min(bytes, kBuffer));
    from.read_exactly(from_offset, piece);
    to.write_at(to_offset, piece);
    from_offset += piece.size();
    to_offset += piece.size();
    bytes -= piece.size();
  }
}

}  // namespace

void copy_range(const File& from, std::uint64_t from_offset, AtomicFile& to, std::uint64_t to_offset,
                std::uint64_t bytes) {
  while (bytes > 0) {
    auto in = static_cast<off_t>(from_offset), out = static_cast<off_t>(to_offset);
    const ssize_t n = ::copy_file_range(from.descriptor(), &in, to.descriptor(), &out, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && not_offered(errno)) return copy_through_memory(from, from_offset, to, to_offset, bytes);
    if (n < 0) throw Error::from_errno("copy", errno).in(to.temporary());
    if (n == 0) throw Error::input("the file ends early").in(from.path()).at(from_offset);
    from_offset += static_cast<std::uint64_t>(n);
    to_offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::uint64_t>(n);
  }
}

}  // namespace assay
