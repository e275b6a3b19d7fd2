#include "verify/zero_runs.h"

#include <algorithm>
#include <cstring>

namespace assay {
bool all_zero(std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  // Equal to itself one byte further on, and the first is zero.
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

void ZeroRunSink::consume(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), kPage - position_ % kPage));
    page_is_zero_ = page_is_zero_ && all_zero(bytes.first(part));
    position_ += part;
    bytes = bytes.subspan(part);
    if (position_ % kPage == 0) end_page();
  }
}

void ZeroRunSink::end_page() {
  if (page_is_zero_) {
    if (current_.bytes == 0) current_.begin = position_ - kPage;
    current_.bytes += kPage;
    if (current_.bytes > longest_.bytes) longest_ = current_;
  } else {
    current_ = {};
  }
  page_is_zero_ = true;
}

}  // namespace assay
