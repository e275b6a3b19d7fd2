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
  blake3,    // BLAKE3 of the file's bytes
  blake2b,   // SHA-256 of the 64 bytes that BLAKE2b-512 makes of the file's: as long as the others
  sha384,    // SHA-256 of the 48 bytes that SHA-384 makes of the file's
  sha512,    // SHA-256 of the 64 bytes that SHA-512 makes of the file's
  shards,    // SHA-256 over the digests of the file's pieces, each of 32 bytes
  xet,       // Hugging Face's Xet, in the order of its text: core/formats/xet/xet_hash.h
};
// Those that no hash of the stream gives: whoever listens to the bytes makes them.
inline constexpr bool is_made_by_listener(DigestKind kind) {
  return kind == DigestKind::shards || kind == DigestKind::xet;
}

struct Digest {
  DigestKind kind = DigestKind::sha256;
  std::array<std::uint8_t, 32> bytes{};  // git_sha1 uses the first 20

  std::size_t size() const { return kind == DigestKind::git_sha1 ? 20 : 32; }
  std::string hex() const { return to_hex(std::span(bytes).first(size())); }
  std::string_view kind_name() const {
    constexpr std::string_view kNames[] = {
        "sha256",           "git-sha1",         "blake3",           "sha256-of-blake2b",
        "sha256-of-sha384", "sha256-of-sha512", "sha256-of-shards", "xet"};
    return kNames[static_cast<std::size_t>(kind)];
  }
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;

  // Exactly 64 hex digits, of git_sha1 40.
  static std::optional<Digest> parse(DigestKind kind, std::string_view hex) {
    Digest digest{kind, {}};
    if (!from_hex(hex, std::span(digest.bytes).first(digest.size()))) return std::nullopt;
    return digest;
  }
};

}  // namespace assay
