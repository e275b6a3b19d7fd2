// A digest and the rule it was made by.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/system/text.h"

namespace assay {

enum class DigestKind : std::uint8_t {
  sha256,    // of the file's bytes
  git_sha1,  // git object id of a blob: SHA-1 of "blob <length>\0" and the bytes
};

struct Digest {
  DigestKind kind = DigestKind::sha256;
  std::array<std::uint8_t, 32> bytes{};  // git_sha1 uses the first 20

  std::size_t size() const { return kind == DigestKind::sha256 ? 32 : 20; }
  std::string hex() const { return to_hex(std::span(bytes).first(size())); }
  std::string_view kind_name() const { return kind == DigestKind::sha256 ? "sha256" : "git-sha1"; }
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;

  // Exactly 64 (sha256) or 40 (git_sha1) hex digits.
  static std::optional<Digest> parse(DigestKind kind, std::string_view hex) {
    Digest digest{kind, {}};
    if (!from_hex(hex, std::span(digest.bytes).first(digest.size()))) return std::nullopt;
    return digest;
  }
};

}  // namespace assay
