// The examination behind `assay verify`: cheap checks first, then one pass over the bytes.
//
//   expectation   what the files should be, and on whose word         verify/expected/
//   survey        is each there, of the right size, and itself?       verify/survey
//   structure     headers, indexes, numbering, code-bearing files     verify/structure, verify/code_files
//   bytes         digests; on request numbers, tensor digests         verify/hash_pass, verify/tensor_sinks
//   afterthoughts renamed files, swapped files, damaged ranges
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/safetensors.h"
#include "core/system/progress.h"
#include "verify/deal.h"
#include "verify/expected/find.h"
#include "verify/verify_report.h"

namespace assay {

// When cheap checks fail and more than this is left to hash, the hash waits until they are mended: a bad
// download is known within a second. --keep-going hashes all the same, --fail-fast stops always.
inline constexpr std::uint64_t kHashDespiteFailures = 8ull << 30;

enum class AfterFailure { automatic, keep_going, stop };

struct VerifyOptions {
  FindOptions find;
  safetensors::Reading reading = safetensors::Reading::reference;
  bool quick = false;  // stop after the cheap checks
  bool numbers = false;
  bool allow_nonfinite = false;
  bool tensor_digests = false;
  bool xet = false;       // Xet hashes in both dialects, beside any other digest
  bool fix_plan = false;  // print what mends each fault,
  std::string fix_from;   // and where the files can be had, if nothing else says it
  bool full = false;      // ignore what the state file knows
  bool keep_cache = false;
  bool follow_links = false;  // symbolic links that leave the folder
  bool fail_on_extra = false;
  bool ignore_unsigned = false;              // of a signed model: files that are not in its list
  bool require_digests = false;              // somebody has to vouch for every weight
  std::optional<std::string> expect_commit;  // and it has to be this commit, by its whole id
  AfterFailure after_failure = AfterFailure::automatic;
  std::optional<NodeShare> share;  // of one copy that many ranks read: this rank's part alone
  std::uint64_t compared_pieces =
      0;  // of what nobody vouches for: digests of so many bytes each, to be compared
          // with those of other copies
  std::optional<fs::path> state;
  std::string include, exclude;     // regular expressions on names; empty: all
  std::vector<fs::path> own_files;  // what assay itself reads or writes (state, receipt, …): never extra
  int jobs = 1;
  ProgressMode progress = ProgressMode::automatic;
};

// Hears of things as they become known, one call at a time; the report says it all again, complete and
// sorted.
class VerifyObserver {
 public:
  virtual ~VerifyObserver() = default;
  // What the path turned out to be, before any file is looked at.
  virtual void found(const Expectation&) {}
  // A file's verdict stands. `progress` is not null while bytes are being hashed. Its diagnosis may still
  // grow when all files are known (swapped, renamed).
  virtual void settled(const FileReport&, Progress* /*progress*/) {}
};

VerifyReport verify(const fs::path& path, const VerifyOptions& options, VerifyObserver& observer);

}  // namespace assay
