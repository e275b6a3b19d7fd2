#include "verify/claims/tar_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostExtensionBytes = 1u << 20;  // pax records hold names, times and owners
constexpr std::uint64_t kMostMemberBytes = 1ull << 62;

std::string_view text_in(std::span<const std::byte> block, std::size_t at, std::size_t length) {
  const std::string_view field(reinterpret_cast<const char*>(block.data()) + at, length);
  return field.substr(0, field.find('\0'));
}

// Octal digits, or GNU's binary form for what is too large for them.
std::optional<std::uint64_t> number_in(std::span<const std::byte> block, std::size_t at, std::size_t length) {
  const auto first = std::to_integer<std::uint8_t>(block[at]);
  if ((first & 0x80) != 0) {
    std::uint64_t value = first & 0x3f;
    if ((first & 0x40) != 0) return std::nullopt;  // negative
    for (std::size_t i = 1; i < length; ++i) {
      if (value >> 54 != 0) return std::nullopt;
      value = value << 8 | std::to_integer<std::uint8_t>(block[at + i]);
    }
    return value;
  }
  std::uint64_t value = 0;
  const std::string_view digits = trim(text_in(block, at, length));
  for (const char c : digits) {
    if (c < '0' || c > '7' || value >> 60 != 0) return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

bool checksum_holds(std::span<const std::byte> block) {
  constexpr std::size_t kAt = 148, kLength = 8;
  const auto written = number_in(block, kAt, kLength);
  std::uint64_t sum = kLength * ' ';
  std::int64_t with_signs = kLength * ' ';  // as some old programs summed
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (i >= kAt && i < kAt + kLength) continue;
    sum += std::to_integer<std::uint8_t>(block[i]);
    with_signs += static_cast<std::int8_t>(std::to_integer<std::uint8_t>(block[i]));
  }
  return written && (*written == sum || static_cast<std::int64_t>(*written) == with_signs);
}

std::string_view plain_name(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  while (name.size() > 1 && name.ends_with('/')) name.remove_suffix(1);
  return name;
}

// Whether a symbolic link of that name, leading there, stays in the folder.
bool stays_inside(std::string_view name, std::string_view target) {
  if (target.starts_with('/') || target.find('\\') != target.npos) return false;
  std::int64_t depth = std::count(name.begin(), name.end(), '/');
  while (!target.empty()) {
    const auto slash = target.find('/');
    const std::string_view part = target.substr(0, slash);
    if (part == "..") {
      if (--depth < 0) return false;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
    target.remove_prefix(slash == target.npos ? target.size() : slash + 1);
  }
  return true;
}

}  // namespace

void TarWalk::consume(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::uint64_t wanted = left_ > 0 ? left_ : padding_ > 0 ? padding_ : kBlock - filled_;
    const auto part = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(wanted, bytes.size())));
    bytes = bytes.subspan(part.size());
    position_ += part.size();
    if (left_ > 0) {
      left_ -= part.size();
      if (in_file_ && listener_ != nullptr)
        listener_->file_bytes(part);
      else if (kind_ != '\0')
        extension_.append(reinterpret_cast<const char*>(part.data()), part.size());
      if (left_ == 0) end_member();
    } else if (padding_ > 0) {
      padding_ -= part.size();
    } else {
      std::copy(part.begin(), part.end(), block_.begin() + static_cast<std::ptrdiff_t>(filled_));
      filled_ += part.size();
      if (filled_ < kBlock) continue;
      filled_ = 0;
      if (!ended_) take_header();
    }
  }
}

void TarWalk::finish() {
  if (left_ > 0 || padding_ > 0 || filled_ > 0)
    throw Error::input("is a tar archive that ends early").at(position_);
}

void TarWalk::take_header() {
  if (std::all_of(block_.begin(), block_.end(), [](std::byte b) { return b == std::byte(0); })) {
    ended_ = true;  // what follows is padding, which nothing unpacks
    return;
  }
  const auto malformed = [&](std::string_view why) {
    throw Error::input(fmt::format("is no tar archive: {}", why)).at(position_ - kBlock);
  };
  if (!checksum_holds(block_)) malformed("the checksum of a header is wrong");
  const auto size = number_in(block_, 124, 12);
  if (!size || *size > kMostMemberBytes) malformed("a size is none");
  TarMember member;
  member.type = static_cast<char>(block_[156]);
  member.size = has_long_size_ ? long_size_ : *size;
  if (member.size > kMostMemberBytes) malformed("a size is none");
  const bool extension = member.type == 'x' || member.type == 'g' || member.type == 'L' || member.type == 'K';
  if (extension) {
    if (*size > kMostExtensionBytes) malformed("an extended header is longer than any");
    kind_ = member.type;
    extension_.clear();
    left_ = *size;
    padding_ = (kBlock - left_ % kBlock) % kBlock;
    if (left_ == 0) end_member();
    return;
  }
  member.name = text_in(block_, 0, 100);
  member.link = text_in(block_, 157, 100);
  if (text_in(block_, 257, 6) == "ustar") {
    if (const auto prefix = text_in(block_, 345, 155); !prefix.empty())
      member.name = std::string(prefix) + "/" + member.name;
  }
  if (!long_name_.empty()) member.name = long_name_;
  if (!long_link_.empty()) member.link = long_link_;
  take_member(std::move(member));
}

void TarWalk::take_member(TarMember member) {
  member.name = plain_name(member.name);
  const bool has_bytes = member.type != '1' && member.type != '2' && member.type != '3' &&
                         member.type != '4' && member.type != '5' && member.type != '6';
  left_ = has_bytes ? member.size : 0;
  padding_ = (kBlock - left_ % kBlock) % kBlock;
  kind_ = '\0';
  check(member);
  in_file_ = member.is_file();
  if (in_file_) {
    ++files_;
    if (listener_ != nullptr) listener_->begin_file(member);
  }
  long_name_.clear();
  long_link_.clear();
  has_long_size_ = sparse_ = false;
  if (left_ == 0) end_member();
}

void TarWalk::end_member() {
  if (kind_ != '\0') {
    take_extension(extension_);
    extension_.clear();
    kind_ = '\0';
  } else if (in_file_) {
    in_file_ = false;
    if (listener_ != nullptr) listener_->end_file();
  }
}

// GNU's long name or link, or pax records: "LENGTH KEY=VALUE\n", the length in decimal and of the whole record.
void TarWalk::take_extension(std::string_view text) {
  if (kind_ == 'L' || kind_ == 'K') {
    (kind_ == 'L' ? long_name_ : long_link_) = text.substr(0, text.find('\0'));
    return;
  }
  if (kind_ == 'g') return;  // of all members: owners and times
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || length <= digits + 1 || length > text.size() || text[digits] != ' ' ||
        text[length - 1] != '\n')
      throw Error::input("is no tar archive: a pax record is malformed").at(position_);
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    text.remove_prefix(length);
    const auto equals = record.find('=');
    if (equals == record.npos) continue;
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") long_name_ = value;
    if (key == "linkpath") long_link_ = value;
    if (key.starts_with("GNU.sparse")) sparse_ = true;
    if (key != "size") continue;
    const auto size = std::from_chars(value.data(), value.data() + value.size(), long_size_);
    if (size.ec != std::errc() || size.ptr != value.data() + value.size())
      throw Error::input("is no tar archive: a pax size is none").at(position_);
    has_long_size_ = true;
  }
}

void TarWalk::check(const TarMember& member) {
  if (member.type == '5' && (member.name.empty() || member.name == ".")) return;
  if (!is_safe_relative_path(member.name)) {
    tell("layer.unsafe_name", member.name, "would be written outside of the folder it is unpacked in");
  } else if (member.type == '1' && !is_safe_relative_path(plain_name(member.link))) {
    tell("layer.link", member.name, fmt::format("is a link out of the folder, to {}", member.link),
         image_ ? Severity::warning : Severity::error);
  } else if (member.type == '2' && !stays_inside(member.name, member.link)) {
    tell("layer.link", member.name, fmt::format("is a link out of the folder, to {}", member.link),
         image_ ? Severity::warning : Severity::error);
  } else if (member.type == '3' || member.type == '4' || member.type == '6') {
    tell("layer.device", member.name, "is a device or a pipe", image_ ? Severity::warning : Severity::error);
  } else if (member.type == 'S' || sparse_) {
    tell("layer.sparse", member.name, "is stored as a sparse file, which is not looked into",
         Severity::warning);
  }
}

void TarWalk::tell(std::string code, std::string name, std::string message, Severity severity) {
  findings_.add({.severity = severity,
                 .code = std::move(code),
                 .message = fmt::format("'{}' in it {}", name, message)});
}

}  // namespace assay
