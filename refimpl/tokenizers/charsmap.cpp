#include "refimpl/tokenizers/charsmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/system/error.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {
namespace {

// The bits of a unit.
constexpr std::size_t kLongestReplacement = 256;  // NFKC's longest has some 40 bytes
constexpr std::uint32_t kLeafValue = (1u << 31) - 1;
bool has_leaf(std::uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
std::uint32_t label(std::uint32_t unit) {
  return unit & (1u << 31 | 0xFF);
}
std::uint32_t offset(std::uint32_t unit) {
  return unit >> 10 << ((unit & 1u << 9) >> 6);
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

}  // namespace

Charsmap::Charsmap(std::string_view blob) {
  if (blob.empty()) return;
  std::uint32_t bytes = 0;
  if (blob.size() >= sizeof bytes) std::memcpy(&bytes, blob.data(), sizeof bytes);
  if (blob.size() <= sizeof bytes || bytes > blob.size() - sizeof bytes || bytes % 4 != 0 || bytes == 0) {
    throw Error::input(
        fmt::format("precompiled_charsmap of {} bytes says its trie has {}", blob.size(), bytes));
  }
  units_.resize(bytes / 4);
  std::memcpy(units_.data(), blob.data() + sizeof bytes, bytes);
  replacements_ = blob.substr(sizeof bytes + bytes);
}

template <class Take>
void Charsmap::walk(std::string_view text, Take take) const {
  if (units_.empty()) return;
  std::uint32_t at = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label(units_[at]) != byte) return;
    const std::uint32_t unit = units_[at];
    at ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) return;
    if (!take(i + 1, units_[at] & kLeafValue)) return;
  }
}

bool Charsmap::leaves_alone(unsigned char ascii) const {
  if (units_.empty()) return true;
  const auto at_label = [&](std::uint32_t at, std::uint32_t byte) {
    return at < units_.size() && label(units_[at]) == byte;
  };
  const std::uint32_t at = offset(units_[0]) ^ ascii;
  if (!at_label(at, ascii)) return true;
  if (has_leaf(units_[at])) return false;
  const std::uint32_t children = at ^ offset(units_[at]);
  for (std::uint32_t next = 1; next < 0x80; ++next) {
    if (at_label(children ^ next, next)) return false;
  }
  return true;
}

std::string_view Charsmap::replacement(std::uint32_t offset) const {
  if (offset >= replacements_.size()) return {};
  const std::string_view rest = std::string_view(replacements_).substr(offset);
  const std::size_t length = std::min(rest.find('\0'), rest.size());
  if (length > kLongestReplacement)
    throw Error::input(fmt::format("precompiled_charsmap has a replacement of {} bytes", length));
  return rest.substr(0, length);
}

std::optional<Charsmap::Replacement> Charsmap::longest(std::string_view text) const {
  std::optional<Replacement> found;
  walk(text, [&](std::size_t length, std::uint32_t value) {
    found = Replacement{length, replacement(value)};
    return true;
  });
  return found;
}

std::optional<Charsmap::Replacement> Charsmap::shortest(std::string_view text) const {
  std::optional<Replacement> found;
  walk(text, [&](std::size_t length, std::uint32_t value) {
    found = Replacement{length, replacement(value)};
    return false;
  });
  return found;
}

std::string Charsmap::normalize_graphemes(std::string_view text) const {
  constexpr std::size_t kLongestWhole = 5;
  std::string result;
  while (!text.empty()) {
    const std::string_view grapheme = text.substr(0, unicode::grapheme_length(text));
    text.remove_prefix(grapheme.size());
    const auto whole = grapheme.size() <= kLongestWhole ? shortest(grapheme) : std::nullopt;
    if (whole) {
      result += whole->with;
      continue;
    }
    unicode::for_each_character(grapheme, [&](const unicode::Character&, std::string_view character) {
      const auto part = shortest(character);
      result += part ? part->with : character;
    });
  }
  return result;
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xFF);
  }
  return bytes;
}

}  // namespace assay
