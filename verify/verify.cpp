#include "verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "core/system/error.h"
#include "core/system/name_filter.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "verify/code_files.h"
#include "verify/expected/weight_files.h"
#include "verify/hash_pass.h"
#include "verify/identity.h"
#include "verify/part_pass.h"
#include "verify/relations.h"
#include "verify/remote_code.h"
#include "verify/structure.h"
#include "verify/survey.h"
#include "verify/verdict.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

// What is to be judged of a folder: the files named one by one, and of those what --include and --exclude
// say.
class Selection {
 public:
  explicit Selection(const VerifyOptions& options)
      : filter_(options.include, options.exclude),
        named_(options.find.only.begin(), options.find.only.end()) {}
  bool accepts_all() const { return filter_.accepts_all() && named_.empty(); }
  bool accepts(const std::string& name) const {
    return (named_.empty() || named_.contains(name)) && filter_.accepts(name);
  }

 private:
  NameFilter filter_;
  std::set<std::string, std::less<>> named_;
};

class Verification {
 public:
  Verification(const VerifyOptions& options, VerifyObserver& observer)
      : options_(options), observer_(observer), selection_(options) {}

  VerifyReport run(const fs::path& path) {
    const auto start = Clock::now();
    report_.started_unix = wall_clock_ns() / 1'000'000'000;
    report_.expectation = find_expectation(path, options_.find);
    report_.trust = trust_summary(report_.expectation);
    report_.findings = std::move(report_.expectation.findings);
    observer_.found(report_.expectation);
    std::error_code ignored;
    single_file_ = !fs::is_directory(path, ignored);
    name_list();
    if (options_.share) take_share();
    report_.files = survey(report_.expectation, options_, report_.findings);
    select_files();
    if (options_.share) leave_to_others();
    look_around();
    check_structures();
    HashPass hashing(report_, structure_, options_, observer_, std::move(code_unseen_));
    announce_settled(hashing);
    if (!hashing.empty() && may_hash(hashing.bytes())) hashing.run();
    if (!report_.parts.empty()) read_parts(report_, options_, observer_);
    hashing.settle_unhashed();
    explain_relations(report_);
    hold_to(options_, report_);
    report_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(report_);
  }

 private:
  void name_list();
  void take_share();
  void leave_to_others();
  bool looks_at_whole() const { return !options_.share || options_.share->rank == 0; }
  void select_files();
  void look_around();
  void check_structures();
  void check_code();
  void announce_settled(const HashPass& hashing);
  bool may_hash(std::uint64_t bytes);

  const VerifyOptions& options_;
  VerifyObserver& observer_;
  const Selection selection_;
  VerifyReport report_;
  bool single_file_ = false;             // PATH is a file, not a folder
  std::vector<PresentFile> bystanders_;  // there, but not selected: seen only where files are compared
  Structure structure_;
  std::set<std::string> others_;   // with options_.share: the files that other ranks read
  std::vector<char> code_unseen_;  // of each file: whether it may hold code is seen when it is hashed
};

void Verification::name_list() {
  ListDigest list;
  for (const ExpectedFile& file : report_.expectation.files) {
    if (file.digest && selection_.accepts(file.name)) list.add(file.name, *file.digest, file.size);
  }
  report_.list = list.hex();
}

// Of the files to be read, those of this rank. What concerns the folder as a whole is rank 0's: what is there without
// being expected, what an index names, which code a config names.
void Verification::take_share() {
  Expectation& source = report_.expectation;
  Dealt dealt =
      deal_out(source, *options_.share, [&](const std::string& name) { return selection_.accepts(name); });
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    if (!dealt.mine[i] && selection_.accepts(source.files[i].name)) others_.insert(source.files[i].name);
  }
  report_.parts = std::move(dealt.parts);
  if (!looks_at_whole()) {
    std::erase_if(source.files, [&](const ExpectedFile& file) { return others_.contains(file.name); });
    source.owns_root = false;
    report_.findings.clear();
  } else if (!dealt.uncut.empty()) {
    report_.findings.push_back(
        {.severity = Severity::note,
         .code = "share.uncut",
         .message = fmt::format(
             "is {}, more than a rank's share of {}, and one rank reads all of it: nobody has digests "
             "of its chunks",
             human_bytes(dealt.uncut_bytes), human_bytes(dealt.total / options_.share->ranks)),
         .file = dealt.uncut,
         .remedy = "a manifest with --chunks lets it be dealt out"});
  }
}

// What others read is there all the same, and its structure is rank 0's to judge.
void Verification::leave_to_others() {
  std::erase_if(report_.files, [&](const FileReport& file) {
    if (!others_.contains(file.name)) return false;
    if (file.has_bytes()) bystanders_.push_back({file.name, report_.path_of(file)});
    return true;
  });
}

// --include and --exclude. What they leave out is not judged, but it is not missing either.
void Verification::select_files() {
  if (!selection_.accepts_all()) {
    std::erase_if(report_.findings,
                  [&](const Finding& f) { return !f.file.empty() && !selection_.accepts(f.file); });
    std::erase_if(report_.files, [&](const FileReport& file) {
      if (selection_.accepts(file.name)) return false;
      if (file.has_bytes()) bystanders_.push_back({file.name, report_.path_of(file)});
      return true;
    });
  }
  if (!report_.files.empty() || has_errors(report_.findings) || !looks_at_whole()) return;
  throw Error::input(selection_.accepts_all() ? "holds no files: there is nothing to verify"
                                              : "holds no file that --include and --exclude select")
      .in(report_.expectation.root)
      .remedy("check the path");
}

// Of a folder of which some files were named: its indexes, configs and other shards say what those should be.
void Verification::look_around() {
  if (options_.find.only.empty()) return;
  std::error_code error;
  for (fs::directory_iterator it(report_.expectation.root, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool speaks = is_shard_index_name(name) || may_name_code(name) || may_hold_weights(name);
    std::error_code ignored;
    if (speaks && !selection_.accepts(name) && it->is_regular_file(ignored))
      bystanders_.push_back({name, it->path()});
  }
}

void Verification::check_structures() {
  // Another rank than the first needs to know its tensors only where it looks into them.
  if (!looks_at_whole() && !options_.numbers && !options_.tensor_digests) return check_code();
  std::vector<PresentFile> present = bystanders_;
  // An index may name files of any kind.
  const auto names_files = [](const auto& file) { return is_shard_index_name(file.name); };
  const bool indexed = std::any_of(report_.files.begin(), report_.files.end(), names_files) ||
                       std::any_of(present.begin(), present.end(), names_files);
  for (const FileReport& file : report_.files) {
    if (file.has_bytes() && (indexed || may_hold_weights(file.name)))
      present.push_back({file.name, report_.path_of(file)});
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
      file.tell("is malformed: " + to_line(bare).substr(std::string_view("error: ").size()),
                file.expected ? "download it again" : "make or download it again");
    }
    file.add(std::move(it->second));
  }
  for (const PresentFile& file : bystanders_) {  // of other ranks, which do not look at it
    const auto it = structure_.per_file.find(file.name);
    if (!options_.share || it == structure_.per_file.end()) continue;
    std::move(it->second.begin(), it->second.end(), std::back_inserter(report_.findings));
  }
  // Of a single file nobody expects its siblings.
  if (single_file_ || !looks_at_whole()) structure_.whole.clear();
  for (Finding& finding : structure_.whole) {
    // Of a file that is missing, unreadable or known to be wrong, said already, and with more detail, by its
    // own entry; or not asked.
    const FileReport* file = report_.find(finding.file);
    if ((file != nullptr && !file->has_bytes() && !file->malformed) || !selection_.accepts(finding.file))
      continue;
    report_.findings.push_back(std::move(finding));
  }
  if (!single_file_ && looks_at_whole() && selection_.accepts_all()) {
    Findings identity = check_identity(structure_, report_.expectation.root);
    std::move(identity.begin(), identity.end(), std::back_inserter(report_.findings));
  }
  check_code();
}

void Verification::check_code() {
  std::set<std::string> remote;  // folders where a file, selected or not, has loaders run Python
  std::set<std::string> named;   // Python that runs if it is here, with all of its folder
  const auto folder_of = [](const std::string& name) { return fs::path(name).parent_path().string(); };
  const auto take = [&](const std::string& name, const fs::path& path) {
    RemoteCode code = read_remote_code(name, path);
    if (code.asked) remote.insert(folder_of(name));
    named.merge(code.python);
    return std::move(code.findings);
  };
  for (const PresentFile& file : bystanders_) {
    if (may_name_code(file.name)) take(file.name, file.path);
  }
  for (FileReport& file : report_.files) {
    if (!file.has_bytes() || !may_name_code(file.name)) continue;
    file.add(take(file.name, report_.path_of(file)));
  }
  for (const FileReport& file : report_.files) {
    if (file.has_bytes() && named.contains(file.name)) remote.insert(folder_of(file.name));
  }
  code_unseen_.assign(report_.files.size(), false);
  parallel_for(options_.jobs, report_.files.size(), [&](std::size_t i) {
    FileReport& file = report_.files[i];
    if (!file.has_bytes()) return;
    const bool runs = !remote.empty() && remote.contains(folder_of(file.name));
    auto findings = code_by_name(file.name, runs);
    if (!findings && seen_when_hashed(file, options_)) {
      code_unseen_[i] = true;
      return;
    }
    if (!findings && file.code_looked_for) findings = file.take_code();
    if (!findings) findings = find_code(file.name, report_.path_of(file), runs);
    file.add(std::move(*findings));
  });
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
    const bool as_published = file.malformed && file.expected_size() == file.size();  // perhaps
    return ((file.status == FileStatus::failed && !as_published) || file.status == FileStatus::missing) &&
           is_about_weights(file.name);
  };
  const auto error = [](const Finding& finding) {
    return finding.severity == Severity::error && (finding.file.empty() || is_about_weights(finding.file));
  };
  const bool bad = std::any_of(report_.findings.begin(), report_.findings.end(), error) ||
                   std::any_of(report_.files.begin(), report_.files.end(), failed);
  // Of many ranks none knows what the others found.
  if (!bad || options_.after_failure == AfterFailure::keep_going) return true;
  if (options_.share && options_.after_failure == AfterFailure::automatic) return true;
  if (options_.after_failure == AfterFailure::automatic && left <= kHashDespiteFailures) return true;
  report_.stopped_early = true;
  return false;
}

}  // namespace

VerifyReport verify(const fs::path& path, const VerifyOptions& options, VerifyObserver& observer) {
  return Verification(options, observer).run(path);
}

}  // namespace assay
