// git-lfs pointer files (git-lfs docs/spec.md, docs/extensions.md; the reference parser lfs/pointer.go).
//
//   version https://git-lfs.github.com/spec/v1
//   oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
//   size 12345
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/digest.h"

namespace assay {

inline constexpr std::uint64_t kLfsPointerMaxBytes = 1024;  // a blob this long or longer is not a pointer

struct LfsExtension {
  int priority = 0;  // 0..9, unique; 0 ran first on checkout's input
  std::string name;
  Digest input;  // sha256 of what this extension was given
};

struct LfsPointer {
  Digest oid;                            // sha256 of the object in LFS storage
  std::uint64_t size = 0;                // of that object
  std::vector<LfsExtension> extensions;  // by priority
  bool canonical = false;                // re-encoding gives the same bytes

  // What the checked-out file must hash to: with extensions, the input of the lowest priority one. Its size
  // is then unknown.
  const Digest& checkout_digest() const { return extensions.empty() ? oid : extensions.front().input; }
  std::optional<std::uint64_t> checkout_size() const {
    return extensions.empty() ? std::optional(size) : std::nullopt;
  }
};

// nullopt: not a pointer; `why`, if given, receives one sentence. The empty file is the pointer of the empty
// file.
std::optional<LfsPointer> parse_lfs_pointer(std::string_view blob, std::string* why = nullptr);
std::string encode_lfs_pointer(const LfsPointer& pointer);

}  // namespace assay
