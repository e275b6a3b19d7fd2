// The result of a verification: one entry a file, findings about the whole, a summary, a verdict.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/digest.h"
#include "core/formats/xet/xet_digests.h"
#include "core/system/file.h"
#include "core/system/finding.h"
#include "verify/chunks.h"
#include "verify/expected/expected.h"
#include "verify/tensor_report.h"

namespace assay {

// What is known of a file's Xet hash.
struct XetFacts {
  std::optional<Digest> listed;    // what the source says it is
  std::optional<XetDigests> made;  // what the bytes give
};

enum class FileStatus : std::uint8_t {
  ok,          // digest as expected, and well formed
  failed,      // wrong size, wrong bytes, or malformed
  missing,     // expected, not there
  extra,       // there, not expected
  unchecked,   // well formed as far as it was looked at; its bytes were not compared with anything
  unreadable,  // permission or I/O error
};
std::string_view status_name(FileStatus status);

// A list may name a million files: this is what each of them costs. What few have is boxed, and a digest that is the
// expected one is kept once.
class FileReport {
 public:
  std::string name;  // relative to the root
  SharedTrust trust;
  std::optional<Digest> expected;
  FileStatus status = FileStatus::unchecked;
  bool malformed : 1 = false;  // by its structure; its bytes may be what the publisher has all the same
  bool reused : 1 = false;     // the digest comes from the state file: the file has not changed since
  bool code_looked_for : 1 = false;

  // There, readable, and nothing known against it so far.
  bool has_bytes() const {
    return status == FileStatus::ok || status == FileStatus::unchecked || status == FileStatus::extra;
  }

  const FileIdentity& identity() const { return identity_; }  // zeros where it was not seen
  std::uint64_t size() const { return identity_.size; }
  const std::optional<Digest>& actual() const { return as_expected_ ? expected : told().actual; }
  void set_identity(const FileIdentity& identity) { identity_ = identity; }
  void set_actual(const Digest& digest);

  KnownSize expected_size() const { return rare_->expected_size; }
  const std::vector<Digest>& chunks() const { return rare_->chunks; }  // as the chunked manifest has them
  void set_listed(KnownSize size, Box<std::vector<Digest>> chunks);

  const XetFacts& xet() const { return *rare_->xet; }
  void set_listed_xet(const Digest& digest) { rare_.make().xet.make().listed = digest; }
  void set_made_xet(const XetDigests& digests) { rare_.make().xet.make().made = digests; }

  // Why it failed, one sentence, and what to do; empty when it did not.
  std::string_view diagnosis() const {
    if (is_told()) return told().diagnosis;
    return status == FileStatus::missing ? kNotThere : std::string_view();
  }
  std::string_view remedy() const { return told().remedy; }
  void tell(std::string diagnosis, std::string remedy = {});

  const Findings& findings() const { return told().findings; }  // structure: header deviations, numbers, …
  const std::vector<ByteRange>& damaged() const { return told().damaged; }  // against a chunked manifest
  const TensorReports& tensors() const { return told().tensors; }
  const fs::path& elsewhere() const { return told().elsewhere; }  // see ExpectedFile; empty: under its name
  void add(Findings findings);
  void drop_findings(std::string_view code);
  void set_damaged(std::vector<ByteRange> ranges) { tell_more().damaged = std::move(ranges); }
  void set_tensors(std::vector<TensorReport> tensors) { tell_more().tensors = std::move(tensors); }
  void set_elsewhere(fs::path path) { tell_more().elsewhere = std::move(path); }

  // What its first bytes say of code in it, where the survey has looked at them already.
  Findings take_code() { return is_told() ? std::exchange(tell_more().code, {}) : Findings(); }
  void set_code(Findings findings);

 private:
  static constexpr std::string_view kNotThere = "is not there";
  struct Told {
    std::optional<Digest> actual;  // where it is not the expected one
    std::string diagnosis, remedy;
    Findings findings, code;
    std::vector<ByteRange> damaged;
    fs::path elsewhere;
    TensorReports tensors;
  };
  struct Rare {
    KnownSize expected_size;
    std::vector<Digest> chunks;
    Box<XetFacts> xet;
    Box<Told> told;
  };
  bool is_told() const { return static_cast<bool>(rare_->told); }
  const Told& told() const { return *rare_->told; }
  Told& tell_more() {
    if (!is_told() && status == FileStatus::missing) rare_.make().told.make().diagnosis = kNotThere;
    return rare_.make().told.make();
  }

  bool as_expected_ : 1 = false;  // its digest is; beside the other bits, so that it takes no room
  FileIdentity identity_;
  Box<Rare> rare_;
};
static_assert(sizeof(FileReport) <= 120 || sizeof(std::string) > 32, "a million of these are kept");

struct VerifyReport {
  Expectation expectation;        // its `files` are moved into `files` below
  std::string trust;              // trust_summary() of those
  std::vector<FileReport> files;  // sorted by name
  Findings findings;              // about the whole: index, numbering, leftovers
  std::string list;               // ListDigest of what is expected, of all ranks together
  std::map<std::string, std::vector<ByteRange>>
      parts;  // of a file that was dealt out by chunks: what was read here
  std::map<std::string, std::vector<Digest>>
      piece_digests;           // where VerifyOptions::compared_pieces asks for them
  bool bytes_checked = false;  // at least one digest was compared
  bool stopped_early = false;  // cheap checks failed and the hash was not begun
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
