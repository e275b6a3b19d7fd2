// What happened to a file that is not what it should be: the sentence a person needs, not just FAILED.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/formats/digest.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "verify/zero_runs.h"

namespace assay {

inline constexpr std::uint64_t kZeroRun = 4096;  // shorter runs of zeros are ordinary in weights

struct Diagnosis {
  std::string code;      // "lfs_pointer", "html_page", "truncated", …
  std::string sentence;  // "is still a git-lfs pointer; 4.3 GB expected"
  std::string remedy;    // "run git lfs pull"
  explicit operator bool() const { return !code.empty(); }
};

// Looks at size and first bytes only: an LFS pointer, a web page, an error message, an empty or truncated
// file, a file that is too long, a weight file that begins with zeros. Empty when nothing is wrong at this
// depth. `expected_size` and `expected` may be unknown.
Diagnosis diagnose_cheaply(const File& file, std::optional<std::uint64_t> expected_size,
                           const std::optional<Digest>& expected);
// The same, where `head` holds the first kFirstLook bytes already, or all there are.
inline constexpr std::size_t kFirstLook = 4096;
Diagnosis diagnose_cheaply(const File& file, std::span<const std::byte> head,
                           std::optional<std::uint64_t> expected_size, const std::optional<Digest>& expected);

// For a file with the wrong digest whose size, where one is expected, is right: extents that were never
// written, zeros from an offset to its end, a run of zeros within (`zeros`: the longest, if one was looked
// for). Reads no more than the zeros at the end.
Diagnosis diagnose_content(const File& file, std::optional<std::uint64_t> expected_size, ZeroRun zeros);

// What the system said of a file that could not be read, and where: "cannot read: Input/output error at byte
// 4096".
std::string sentence_of(const Error& error);

// The extents of the file that were never written, as the file system tells (SEEK_HOLE); empty where it
// cannot.
struct Holes {
  std::uint64_t bytes = 0;  // in all
  std::uint64_t first = 0;  // offset of the first
};
Holes find_holes(const File& file);

}  // namespace assay
