#include "verify/expected/git_conversion.h"

#include <iconv.h>

#include <algorithm>
#include <optional>

#include "core/formats/stream_digest.h"
#include "core/system/error.h"

namespace assay::git {
namespace {

constexpr std::uint64_t kMaxConverted = 64ull << 20;

std::optional<std::string> to_utf8(std::string text, std::string encoding) {
  // git's own names: "UTF-16LE-BOM" is UTF-16LE behind a byte order mark.
  constexpr std::string_view kMark = "-BOM";
  if (encoding.ends_with(kMark)) {
    encoding.resize(encoding.size() - kMark.size());
    if (text.size() < 2) return std::nullopt;
    text.erase(0, 2);
  }
  const iconv_t converter = ::iconv_open("UTF-8", encoding.c_str());
  if (converter == reinterpret_cast<iconv_t>(-1)) return std::nullopt;
  std::string converted(4 * text.size() + 16, '\0');
  char *in = text.data(), *out = converted.data();
  std::size_t in_left = text.size(), out_left = converted.size();
  const std::size_t result = ::iconv(converter, &in, &in_left, &out, &out_left);
  ::iconv_close(converter);
  if (result == static_cast<std::size_t>(-1)) return std::nullopt;
  converted.resize(converted.size() - out_left);
  return converted;
}

void to_line_feeds(std::string& text) {
  std::string kept;
  kept.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') kept += text[i];
  }
  text = std::move(kept);
}

// "$Id: 4d7a… $" -> "$Id$"
void collapse_ident(std::string& text) {
  constexpr std::string_view kOpen = "$Id:";
  for (auto at = text.find(kOpen); at != std::string::npos; at = text.find(kOpen, at + 1)) {
    const auto end = text.find_first_of("$\n", at + kOpen.size());
    if (end != std::string::npos && text[end] == '$') text.replace(at, end + 1 - at, "$Id$");
  }
}

}  // namespace

bool equals_after_conversion(const fs::path& file, const Conversion& conversion, const Digest& blob) {
  try {
    std::string text = read_small_file(file, kMaxConverted);
    if (!conversion.encoding.empty()) {
      auto converted = to_utf8(std::move(text), conversion.encoding);
      if (!converted) return false;
      text = std::move(*converted);
    }
    const bool binary = conversion.automatic && text.find('\0') != std::string::npos;
    if (conversion.line_ends && !binary) to_line_feeds(text);
    if (conversion.ident) collapse_ident(text);
    StreamDigest digest(DigestKind::git_sha1, text.size());
    digest.update(std::as_bytes(std::span(text)));
    return digest.finish() == blob;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace assay::git
