#include "core/formats/impostor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "core/formats/lfs_pointer.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {

bool looks_like_html(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  std::string text(trim(head.substr(0, 256)));
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text.starts_with("<!doctype html") || text.starts_with("<html") || text.starts_with("<head");
}

void refuse_impostor(const File& file) {
  std::array<std::byte, kLfsPointerMaxBytes> buffer{};
  const std::size_t size = file.read_at(0, buffer);
  const std::string_view head(reinterpret_cast<const char*>(buffer.data()), size);
  if (file.size() < kLfsPointerMaxBytes && !head.empty()) {
    if (const auto pointer = parse_lfs_pointer(head)) {
      throw Error::input(fmt::format("is still a git-lfs pointer, to {}", human_bytes(pointer->size)))
          .in(file.path())
          .remedy("run git lfs pull, or download the file itself");
    }
  }
  if (looks_like_html(head)) {
    throw Error::input("is an HTML page").in(file.path()).remedy("download it again and look at the URL");
  }
}

}  // namespace assay
