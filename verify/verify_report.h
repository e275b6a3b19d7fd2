// The result of a verification: one entry a file, findings about the whole, a summary, a verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/digest.h"
#include "core/system/file.h"
#include "core/system/finding.h"
#include "core/system/report.h"
#include "verify/chunks.h"
#include "verify/expected/expected.h"

namespace assay {

enum class FileStatus {
  ok,          // digest as expected, and well formed
  failed,      // wrong size, wrong bytes, or malformed
  missing,     // expected, not there
  extra,       // there, not expected
  unchecked,   // well formed as far as it was looked at; its bytes were not compared with anything
  unreadable,  // permission or I/O error
};
std::string_view status_name(FileStatus status);

struct FileReport {
  std::string name;  // relative to the root
  fs::path path;
  FileStatus status = FileStatus::unchecked;
  std::optional<Digest> expected, actual;
  std::optional<std::uint64_t> expected_size;
  std::uint64_t size = 0;
  Trust trust;
  std::string diagnosis;  // why it failed, one sentence; empty when it did not
  std::string remedy;
  bool malformed = false;  // by its structure; its bytes may be what the publisher has all the same
  bool reused = false;     // the digest comes from the state file: the file has not changed since
  FileIdentity identity;
  Findings findings;               // structure: header deviations, numbers, …
  std::vector<ByteRange> damaged;  // against a chunked manifest
  Json tensors;                    // array of {name, …} with --numbers or --tensor-digests; else null
  // There, readable, and nothing known against it so far.
  bool has_bytes() const {
    return status == FileStatus::ok || status == FileStatus::unchecked || status == FileStatus::extra;
  }
};

struct VerifyReport {
  Expectation expectation;        // its `files` are moved into `files` below
  std::vector<FileReport> files;  // sorted by name
  Findings findings;              // about the whole: index, numbering, leftovers
  bool bytes_checked = false;     // at least one digest was compared
  bool stopped_early = false;     // cheap checks failed and the hash was not begun
  bool interrupted = false;
  std::uint64_t bytes_hashed = 0;
  std::uint64_t bytes_reused = 0;
  std::uint64_t bytes_not_hashed = 0;  // because of --quick, an early stop or an interrupt
  double seconds = 0;
  std::int64_t started_unix = 0;

  std::uint64_t count(FileStatus status) const;
  bool good() const;  // nothing failed, missing or unreadable, no error finding, not interrupted or stopped
};

}  // namespace assay
