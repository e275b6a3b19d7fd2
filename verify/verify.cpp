#include "verify/verify.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "core/system/error.h"
#include "core/system/name_filter.h"
#include "verify/code_files.h"
#include "verify/expected/weight_files.h"
#include "verify/hash_pass.h"
#include "verify/identity.h"
#include "verify/relations.h"
#include "verify/structure.h"
#include "verify/survey.h"
#include "verify/verdict.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

class Verification {
 public:
  Verification(const VerifyOptions& options, VerifyObserver& observer)
      : options_(options), observer_(observer) {}

  VerifyReport run(const fs::path& path) {
    const auto start = Clock::now();
    report_.started_unix = wall_clock_ns() / 1'000'000'000;
    report_.expectation = find_expectation(path, options_.find);
    report_.findings = std::move(report_.expectation.findings);
    observer_.found(report_.expectation);
    std::error_code ignored;
    single_file_ = !fs::is_directory(path, ignored);
    report_.files = survey(report_.expectation, options_, report_.findings);
    select_files();
    check_structures();
    HashPass hashing(report_, structure_, options_, observer_);
    announce_settled(hashing);
    if (!hashing.empty() && may_hash(hashing.bytes())) hashing.run();
    hashing.settle_unhashed();
    explain_relations(report_);
    hold_to(options_, report_);
    report_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(report_);
  }

 private:
  void select_files();
  void check_structures();
  void check_code();
  void announce_settled(const HashPass& hashing);
  bool may_hash(std::uint64_t bytes);

  const VerifyOptions& options_;
  VerifyObserver& observer_;
  VerifyReport report_;
  bool single_file_ = false;             // PATH is a file, not a folder
  std::vector<PresentFile> bystanders_;  // there, but not selected: seen only where files are compared
  Structure structure_;
};

// --include and --exclude. What they leave out is not judged, but it is not missing either.
void Verification::select_files() {
  const NameFilter filter(options_.include, options_.exclude);
  if (!filter.accepts_all()) {
    std::erase_if(report_.findings,
                  [&](const Finding& f) { return !f.file.empty() && !filter.accepts(f.file); });
    std::erase_if(report_.files, [&](const FileReport& file) {
      if (filter.accepts(file.name)) return false;
      if (file.has_bytes()) bystanders_.push_back({file.name, file.path});
      return true;
    });
  }
  if (!report_.files.empty() || has_errors(report_.findings)) return;
  throw Error::input(filter.accepts_all() ? "holds no files: there is nothing to verify"
                                          : "holds no file that --include and --exclude select")
      .in(report_.expectation.root)
      .remedy("check the path");
}

void Verification::check_structures() {
  std::vector<PresentFile> present = bystanders_;
  std::set<std::string> missing;  // or unreadable, or known to be wrong
  for (const FileReport& file : report_.files) {
    if (file.has_bytes()) present.push_back({file.name, file.path});
    if (!file.has_bytes()) missing.insert(file.name);
  }
  structure_ = check_structure(present, options_.reading, options_.jobs);
  for (FileReport& file : report_.files) {
    const auto it = structure_.per_file.find(file.name);
    if (it == structure_.per_file.end()) continue;
    if (has_errors(it->second) && file.has_bytes()) {
      const Finding& first = *std::find_if(it->second.begin(), it->second.end(),
                                           [](const Finding& f) { return f.severity == Severity::error; });
      Finding bare = first;
      bare.file.clear();
      file.status = FileStatus::failed;
      file.malformed = true;
      file.diagnosis = "is malformed: " + to_line(bare).substr(std::string_view("error: ").size());
      file.remedy = file.expected ? "download it again" : "make or download it again";
    }
    std::move(it->second.begin(), it->second.end(), std::back_inserter(file.findings));
  }
  // Of a single file nobody expects its siblings.
  if (single_file_) structure_.whole.clear();
  const NameFilter filter(options_.include, options_.exclude);
  for (Finding& finding : structure_.whole) {
    // Said already, and with more detail, by the file's own entry; or not asked.
    if (missing.contains(finding.file) || !filter.accepts(finding.file)) continue;
    report_.findings.push_back(std::move(finding));
  }
  if (!single_file_ && filter.accepts_all()) {
    Findings identity = check_identity(structure_, report_.expectation.root);
    std::move(identity.begin(), identity.end(), std::back_inserter(report_.findings));
  }
  check_code();
}

void Verification::check_code() {
  std::set<std::string> remote;  // folders where a config, selected or not, has loaders run Python
  const auto folder_of = [](const std::string& name) { return fs::path(name).parent_path().string(); };
  for (const PresentFile& file : bystanders_) {
    if (may_name_code(file.name) && read_remote_code(file.name, file.path).asked)
      remote.insert(folder_of(file.name));
  }
  for (FileReport& file : report_.files) {
    if (!file.has_bytes() || !may_name_code(file.name)) continue;
    RemoteCode code = read_remote_code(file.name, file.path);
    if (code.asked) remote.insert(folder_of(file.name));
    std::move(code.findings.begin(), code.findings.end(), std::back_inserter(file.findings));
  }
  for (FileReport& file : report_.files) {
    if (!file.has_bytes()) continue;
    Findings findings = find_code(file.name, file.path, remote.contains(folder_of(file.name)));
    std::move(findings.begin(), findings.end(), std::back_inserter(file.findings));
  }
}

// Everything that hashing will not change: said at once, before any weight is read.
void Verification::announce_settled(const HashPass& hashing) {
  for (FileReport& file : report_.files) {
    if (hashing.may_say_more(file)) continue;
    if (file.status == FileStatus::failed || file.status == FileStatus::missing ||
        file.status == FileStatus::unreadable) {
      observer_.settled(file, nullptr);
    }
  }
}

// Damage to a text or a missing one says nothing about the weights: only theirs is a reason not to read them.
bool is_about_weights(const std::string& name) {
  return may_hold_weights(name) || is_shard_index_name(name);
}

bool Verification::may_hash(std::uint64_t left) {
  if (options_.quick) return false;
  const auto failed = [](const FileReport& file) {
    const bool as_published = file.malformed && file.expected_size == file.size;  // perhaps
    return ((file.status == FileStatus::failed && !as_published) || file.status == FileStatus::missing) &&
           is_about_weights(file.name);
  };
  const auto error = [](const Finding& finding) {
    return finding.severity == Severity::error && (finding.file.empty() || is_about_weights(finding.file));
  };
  const bool bad = std::any_of(report_.findings.begin(), report_.findings.end(), error) ||
                   std::any_of(report_.files.begin(), report_.files.end(), failed);
  if (!bad || options_.after_failure == AfterFailure::keep_going) return true;
  if (options_.after_failure == AfterFailure::automatic && left <= kHashDespiteFailures) return true;
  report_.stopped_early = true;
  return false;
}

}  // namespace

VerifyReport verify(const fs::path& path, const VerifyOptions& options, VerifyObserver& observer) {
  return Verification(options, observer).run(path);
}

}  // namespace assay
