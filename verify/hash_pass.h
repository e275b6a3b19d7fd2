// The one pass over the bytes: which files are read, who listens to each, and what its digest means.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/formats/hash/hasher.h"
#include "core/system/progress.h"
#include "verify/claims/claim_sink.h"
#include "verify/relations.h"
#include "verify/state.h"
#include "verify/structure.h"
#include "verify/verify.h"
#include "verify/zero_runs.h"

namespace assay {

class HashPass {
 public:
  // Plans it: every file whose digest is known, may be a missing one under another name, or is to be
  // examined.
  // `code_unseen`: of each file, whether it is still to be looked into for code.
  HashPass(VerifyReport& report, const Structure& structure, const VerifyOptions& options,
           VerifyObserver& observer, std::vector<char> code_unseen);

  bool empty() const { return to_hash_.empty(); }
  // A file that has failed already, and of which its bytes can say more: that it is malformed as published,
  // or which of its ranges are missing.
  bool may_say_more(const FileReport& file) const;
  std::uint64_t bytes() const;
  void run();
  // What was to be hashed and was not (--quick, an early stop, Ctrl-C), and what never was; and what was
  // known from before, and not looked into.
  void settle_unhashed();

 private:
  struct Reading;
  void remember(const FileReport& file, std::int64_t started_ns);
  void save_state();
  void find_same_files();
  std::span<const std::uint32_t> not_remembered(std::vector<std::uint32_t>& files);
  void settle_one(FileReport& file);
  void take_result(FileReport& file, HashResult&& result, Reading& reading, std::int64_t started_ns);
  std::size_t index_of(const FileReport& file) const {
    return static_cast<std::size_t>(&file - report_.files.data());
  }
  bool examines(const FileReport& file) const;
  const FileClaims& claims_of(const FileReport& file) const;
  void hold_to_claims(FileReport& file, ClaimOutcome outcome);
  void tell_agreements();
  std::optional<StateEntry> recall(const FileReport& file) const;
  void reuse(FileReport& file, StateEntry&& entry);
  Reading listen_to(const FileReport& file) const;
  void add_number_findings(FileReport& file) const;
  void judge(FileReport& file, ZeroRun zeros = {});
  void settle(FileReport& file, ZeroRun zeros);
  void announce(const FileReport& file) { observer_.settled(file, progress_.get()); }
  DigestKind kind_of(const FileReport& file) const;

  VerifyReport& report_;
  const Structure& structure_;
  const VerifyOptions& options_;
  VerifyObserver& observer_;
  std::vector<char> code_unseen_;
  MissingFiles missing_;
  std::vector<std::uint32_t> to_hash_;                       // one index a distinct path and digest kind
  std::map<std::size_t, std::vector<std::size_t>> same_as_;  // others that are the same bytes (hub snapshots)
  std::unique_ptr<VerifyState> state_;
  std::set<std::string> written_to_;  // names of files that somebody had open for writing
  std::map<std::string, std::vector<std::string>> agreements_;  // what was claimed and is so, of which files
  std::unique_ptr<Progress> progress_;
};

}  // namespace assay
