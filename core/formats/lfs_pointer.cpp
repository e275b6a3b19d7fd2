#include "core/formats/lfs_pointer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace assay {
namespace {

constexpr std::string_view kVersion = "https://git-lfs.github.com/spec/v1";
constexpr std::string_view kVersionAliases[] = {kVersion, "https://hawser.github.com/spec/v1",
                                                "http://git-media.io/v/2"};
// SHA-256 of no bytes at all.
constexpr std::string_view kEmptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// Ends a parse with its reason; never leaves this file.
struct NotAPointer {
  std::string why;
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

Digest parse_oid(std::string_view value, std::string_view what) {
  constexpr std::string_view kMethod = "sha256:";
  if (!value.starts_with(kMethod)) throw NotAPointer{fmt::format("{} is not made by sha256", what)};
  value.remove_prefix(kMethod.size());
  const bool lower = std::none_of(value.begin(), value.end(), [](char c) { return c >= 'A' && c <= 'F'; });
  const auto digest = Digest::parse(DigestKind::sha256, value);
  if (!digest || !lower) throw NotAPointer{fmt::format("{} is not 64 lower-case hex digits", what)};
  return *digest;
}

// What Go's strconv.ParseInt(…, 10, 64) takes, and not negative: "+5", "007" and "-0" are sizes.
std::uint64_t parse_size(std::string_view value) {
  std::string_view digits = value;
  const bool minus = digits.starts_with('-');
  if (minus || digits.starts_with('+')) digits.remove_prefix(1);
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || size > std::numeric_limits<std::int64_t>::max() || (minus && size != 0)) {
    throw NotAPointer{"size is not a whole number of bytes"};
  }
  return size;
}

// "ext-0-name": one digit of priority, then a name that begins with a word character.
bool is_extension_key(std::string_view key) {
  return key.size() >= 7 && key.starts_with("ext-") && key[4] >= '0' && key[4] <= '9' && key[5] == '-' &&
         is_word(key[6]);
}

LfsExtension parse_extension(std::string_view key, std::string_view value) {
  return {key[4] - '0', std::string(key.substr(6)), parse_oid(value, "an extension's digest")};
}

// What the reference trims from both ends before it reads lines (bytes.TrimSpace, its ASCII part).
std::string_view trim_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

class Parser {
 public:
  LfsPointer parse(std::string_view text) {
    while (!text.empty()) {
      const auto newline = text.find('\n');
      std::string_view line = text.substr(0, newline);
      text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) take_line(line);
    }
    if (keys_seen_ < std::size(kKeys)) throw NotAPointer{fmt::format("there is no {}", kKeys[keys_seen_])};
    auto& extensions = pointer_.extensions;
    std::sort(extensions.begin(), extensions.end(),
              [](const LfsExtension& a, const LfsExtension& b) { return a.priority < b.priority; });
    const auto twice = std::adjacent_find(
        extensions.begin(), extensions.end(),
        [](const LfsExtension& a, const LfsExtension& b) { return a.priority == b.priority; });
    if (twice != extensions.end()) throw NotAPointer{"two extensions have the same priority"};
    return std::move(pointer_);
  }

 private:
  static constexpr std::string_view kKeys[] = {"version", "oid", "size"};  // in this order

  void take_line(std::string_view line) {
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) throw NotAPointer{"a line is not of the form \"key value\""};
    const std::string_view key = line.substr(0, blank), value = line.substr(blank + 1);
    if (keys_seen_ == std::size(kKeys)) throw NotAPointer{"there is a line after size"};
    if (key == kKeys[keys_seen_]) {
      take_value(keys_seen_++, value);
    } else if (is_extension_key(key)) {
      pointer_.extensions.push_back(parse_extension(key, value));
    } else {
      throw NotAPointer{fmt::format("a line does not begin with {} as it should", kKeys[keys_seen_])};
    }
  }

  void take_value(std::size_t key, std::string_view value) {
    switch (key) {
      case 0:
        if (std::find(std::begin(kVersionAliases), std::end(kVersionAliases), value) ==
            std::end(kVersionAliases)) {
          throw NotAPointer{"its version is none of git-lfs"};
        }
        break;
      case 1: pointer_.oid = parse_oid(value, "oid"); break;
      default: pointer_.size = parse_size(value); break;
    }
  }

  LfsPointer pointer_;
  std::size_t keys_seen_ = 0;
};

LfsPointer parse_or_throw(std::string_view blob) {
  if (blob.empty()) {
    LfsPointer empty;
    empty.oid = *Digest::parse(DigestKind::sha256, kEmptyDigest);
    empty.canonical = true;
    return empty;
  }
  if (blob.size() >= kLfsPointerMaxBytes) {
    throw NotAPointer{fmt::format("it is {} bytes or longer", kLfsPointerMaxBytes)};
  }
  LfsPointer pointer = Parser().parse(trim_space(blob));
  pointer.canonical = encode_lfs_pointer(pointer) == blob;
  return pointer;
}

}  // namespace

std::optional<LfsPointer> parse_lfs_pointer(std::string_view blob, std::string* why) {
  try {
    return parse_or_throw(blob);
  } catch (NotAPointer& reason) {
    if (why != nullptr) *why = std::move(reason.why);
    return std::nullopt;
  }
}

std::string encode_lfs_pointer(const LfsPointer& pointer) {
  if (pointer.size == 0) return {};
  std::string text = fmt::format("version {}\n", kVersion);
  for (const LfsExtension& e : pointer.extensions) {
    text += fmt::format("ext-{}-{} sha256:{}\n", e.priority, e.name, e.input.hex());
  }
  return text + fmt::format("oid sha256:{}\nsize {}\n", pointer.oid.hex(), pointer.size);
}

}  // namespace assay
