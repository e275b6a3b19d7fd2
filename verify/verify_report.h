// The result of a verification: one entry a file, findings about the whole, a summary, a verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/digest.h"
#include "core/system/file.h"
#include "core/system/finding.h"
#include "verify/chunks.h"
#include "verify/expected/expected.h"
#include "verify/tensor_report.h"

namespace assay {

enum class FileStatus : std::uint8_t {
  ok,          // digest as expected, and well formed
  failed,      // wrong size, wrong bytes, or malformed
  missing,     // expected, not there
  extra,       // there, not expected
  unchecked,   // well formed as far as it was looked at; its bytes were not compared with anything
  unreadable,  // permission or I/O error
};
std::string_view status_name(FileStatus status);

// A list may name a million files, here or not: a missing one has neither of the two parts that are boxed.
class FileReport {
 public:
  std::string name;  // relative to the root
  std::optional<Digest> expected;
  FileStatus status = FileStatus::unchecked;
  bool malformed = false;  // by its structure; its bytes may be what the publisher has all the same
  bool reused = false;     // the digest comes from the state file: the file has not changed since
  bool code_looked_for = false;
  KnownSize expected_size;
  SharedTrust trust;

  // There, readable, and nothing known against it so far.
  bool has_bytes() const {
    return status == FileStatus::ok || status == FileStatus::unchecked || status == FileStatus::extra;
  }

  const FileIdentity& identity() const { return seen_->identity; }  // zeros where it was not seen
  std::uint64_t size() const { return seen_->identity.size; }
  const std::optional<Digest>& actual() const { return seen_->digest; }
  void set_identity(const FileIdentity& identity) { seen_.make().identity = identity; }
  void set_actual(const Digest& digest) { seen_.make().digest = digest; }

  // Why it failed, one sentence, and what to do; empty when it did not.
  std::string_view diagnosis() const {
    if (told_) return told_->diagnosis;
    return status == FileStatus::missing ? kNotThere : std::string_view();
  }
  std::string_view remedy() const { return told_->remedy; }
  void tell(std::string diagnosis, std::string remedy = {});

  const Findings& findings() const { return told_->findings; }  // structure: header deviations, numbers, …
  const std::vector<ByteRange>& damaged() const { return told_->damaged; }  // against a chunked manifest
  const TensorReports& tensors() const { return told_->tensors; }
  const std::vector<Digest>& chunks() const { return told_->chunks; }  // as the chunked manifest has them
  const fs::path& elsewhere() const { return told_->elsewhere; }  // see ExpectedFile; empty: under its name
  void add(Findings findings);
  void drop_findings(std::string_view code);
  void set_damaged(std::vector<ByteRange> ranges) { told().damaged = std::move(ranges); }
  void set_tensors(std::vector<TensorReport> tensors) { told().tensors = std::move(tensors); }
  void set_chunks(std::vector<Digest> chunks) { told().chunks = std::move(chunks); }
  void set_elsewhere(fs::path path) { told().elsewhere = std::move(path); }

  // What its first bytes say of code in it, where the survey has looked at them already.
  Findings take_code() { return told_ ? std::exchange(told().code, {}) : Findings(); }
  void set_code(Findings findings);

 private:
  static constexpr std::string_view kNotThere = "is not there";
  struct Seen {
    FileIdentity identity;
    std::optional<Digest> digest;
  };
  struct Told {
    std::string diagnosis, remedy;
    Findings findings, code;
    std::vector<ByteRange> damaged;
    std::vector<Digest> chunks;
    fs::path elsewhere;
    TensorReports tensors;
  };
  Told& told() {
    if (!told_ && status == FileStatus::missing) told_.make().diagnosis = kNotThere;
    return told_.make();
  }

  Box<Seen> seen_;
  Box<Told> told_;
};

struct VerifyReport {
  Expectation expectation;        // its `files` are moved into `files` below
  std::string trust;              // trust_summary() of those
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

  fs::path path_of(const FileReport& file) const {
    return file.elsewhere().empty() ? expectation.root / file.name : file.elsewhere();
  }
  const FileReport* find(std::string_view name) const;
  std::uint64_t count(FileStatus status) const;
  bool good() const;  // nothing failed, missing or unreadable, no error finding, not interrupted or stopped
};

}  // namespace assay
