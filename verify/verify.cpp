#include "verify/verify.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>

#include "core/system/error.h"
#include "core/system/name_filter.h"
#include "core/system/threads.h"
#include "verify/chunks.h"
#include "verify/code_files.h"
#include "verify/diagnose.h"
#include "verify/identity.h"
#include "verify/state.h"
#include "verify/structure.h"
#include "verify/survey.h"
#include "verify/tensor_sinks.h"
#include "verify/zero_runs.h"

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
    report_.files = survey(report_.expectation, options_);
    select_files();
    check_structures();
    plan_hashing();
    announce_settled();
    if (!to_hash_.empty() && may_hash()) hash();
    settle_unhashed();
    explain_relations();
    report_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(report_);
  }

 private:
  void select_files();
  void check_structures();
  void check_code();
  void plan_hashing();
  void announce_settled();
  bool may_hash();
  void hash();
  void settle_unhashed();
  void suspect_by_size();
  void explain_relations();
  void drop_consequences();

  struct Reading;
  void take_result(FileReport& file, HashResult&& result, Reading& reading, std::int64_t started_ns);
  bool examines(const FileReport& file) const;
  std::optional<VerifyState::Entry> recall(const FileReport& file) const;
  void reuse(FileReport& file, VerifyState::Entry&& entry);
  Reading listen_to(const FileReport& file) const;
  void add_number_findings(FileReport& file) const;
  void judge(FileReport& file, ZeroRun zeros = {});
  void announce(const FileReport& file) { observer_.settled(file, progress_.get()); }
  std::optional<DigestKind> candidate_for_missing(const FileReport& file) const;
  void note_missing();
  DigestKind kind_of(const FileReport& file) const;

  const VerifyOptions& options_;
  VerifyObserver& observer_;
  VerifyReport report_;
  bool single_file_ = false;             // PATH is a file, not a folder
  std::vector<PresentFile> bystanders_;  // there, but not selected: seen only where files are compared
  Structure structure_;
  std::map<std::uint64_t, DigestKind> missing_sizes_;  // of missing files, with the kind of their digest
  std::map<std::string, DigestKind> missing_extensions_;
  std::vector<std::size_t> to_hash_;                         // one index a distinct path and digest kind
  std::map<std::size_t, std::vector<std::size_t>> same_as_;  // others that are the same bytes (hub snapshots)
  std::map<std::string, const std::vector<Digest>*> chunks_;  // of files in a chunked manifest
  std::unique_ptr<VerifyState> state_;
  std::unique_ptr<Progress> progress_;
};

bool has_bytes(const FileReport& file) {
  return file.status == FileStatus::ok || file.status == FileStatus::unchecked ||
         file.status == FileStatus::extra;
}

// --include and --exclude. What they leave out is not judged, but it is not missing either.
void Verification::select_files() {
  const NameFilter filter(options_.include, options_.exclude);
  if (!filter.accepts_all()) {
    std::erase_if(report_.findings,
                  [&](const Finding& f) { return !f.file.empty() && !filter.accepts(f.file); });
    std::erase_if(report_.files, [&](const FileReport& file) {
      if (filter.accepts(file.name)) return false;
      if (has_bytes(file)) bystanders_.push_back({file.name, file.path});
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
    if (has_bytes(file)) present.push_back({file.name, file.path});
    if (!has_bytes(file)) missing.insert(file.name);
  }
  structure_ = check_structure(present, options_.reading, options_.jobs);
  for (FileReport& file : report_.files) {
    const auto it = structure_.per_file.find(file.name);
    if (it == structure_.per_file.end()) continue;
    if (has_errors(it->second) && has_bytes(file)) {
      const Finding& first = *std::find_if(it->second.begin(), it->second.end(),
                                           [](const Finding& f) { return f.severity == Severity::error; });
      Finding bare = first;
      bare.file.clear();
      file.status = FileStatus::failed;
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
  std::map<std::string, bool> auto_map;  // by folder
  for (FileReport& file : report_.files) {
    if (!has_bytes(file)) continue;
    const fs::path folder = fs::path(file.name).parent_path();
    const auto [it, fresh] = auto_map.try_emplace(folder.string(), false);
    if (fresh) it->second = has_auto_map(report_.expectation.root / folder / "config.json");
    Findings findings = find_code(file.name, file.path, it->second);
    std::move(findings.begin(), findings.end(), std::back_inserter(file.findings));
  }
}

// A file that nothing was expected of may be a missing one under another name: its size says so first, or,
// where sizes are not known, its extension. The kind of digest it would have to be compared by.
std::optional<DigestKind> Verification::candidate_for_missing(const FileReport& file) const {
  if (file.status != FileStatus::extra || !file.diagnosis.empty()) return std::nullopt;
  if (const auto it = missing_sizes_.find(file.size); it != missing_sizes_.end()) return it->second;
  const auto it = missing_extensions_.find(file.path.extension().string());
  return it == missing_extensions_.end() ? std::nullopt : std::optional(it->second);
}

void Verification::note_missing() {
  for (const FileReport& file : report_.files) {
    if (file.status != FileStatus::missing || !file.expected) continue;
    if (file.expected_size)
      missing_sizes_.try_emplace(*file.expected_size, file.expected->kind);
    else
      missing_extensions_.try_emplace(fs::path(file.name).extension().string(), file.expected->kind);
  }
}

DigestKind Verification::kind_of(const FileReport& file) const {
  if (file.expected) return file.expected->kind;
  return candidate_for_missing(file).value_or(DigestKind::sha256);
}

void Verification::plan_hashing() {
  note_missing();
  if (options_.state) state_ = std::make_unique<VerifyState>(*options_.state);
  for (const ExpectedFile& file : report_.expectation.files) {
    if (!file.chunks.empty()) chunks_[file.name] = &file.chunks;
  }
  std::map<std::pair<std::string, DigestKind>, std::size_t> seen;
  for (std::size_t i = 0; i < report_.files.size(); ++i) {
    FileReport& file = report_.files[i];
    const bool wanted = (file.status == FileStatus::ok && file.expected) || candidate_for_missing(file) ||
                        (examines(file) && has_bytes(file));
    if (!wanted) continue;
    const auto [it, fresh] = seen.try_emplace({file.path.lexically_normal().string(), kind_of(file)}, i);
    if (fresh)
      to_hash_.push_back(i);
    else
      same_as_[it->second].push_back(i);
  }
}

// Everything that hashing will not change: said at once, before any weight is read.
void Verification::announce_settled() {
  for (FileReport& file : report_.files) {
    if (file.status == FileStatus::failed || file.status == FileStatus::missing ||
        file.status == FileStatus::unreadable) {
      announce(file);
    }
  }
}

bool Verification::may_hash() {
  std::uint64_t left = 0;
  for (const std::size_t i : to_hash_) left += report_.files[i].size;
  if (options_.quick) return false;
  const bool failed = has_errors(report_.findings) ||
                      std::any_of(report_.files.begin(), report_.files.end(), [](const FileReport& f) {
                        return f.status == FileStatus::failed || f.status == FileStatus::missing;
                      });
  if (!failed || options_.after_failure == AfterFailure::keep_going) return true;
  if (options_.after_failure == AfterFailure::automatic && left <= kHashDespiteFailures) return true;
  report_.stopped_early = true;
  return false;
}

// The listeners of one file's bytes.
struct Verification::Reading {
  std::unique_ptr<TensorSink> tensors;
  std::unique_ptr<ChunkSink> chunks;
  std::unique_ptr<ZeroRunSink> zeros;
  std::unique_ptr<FanOut> fan_out;
  ByteSink* sink() {
    std::vector<ByteSink*> sinks;
    if (zeros) sinks.push_back(zeros.get());
    if (tensors) sinks.push_back(tensors.get());
    if (chunks) sinks.push_back(chunks.get());
    if (sinks.size() < 2) return sinks.empty() ? nullptr : sinks.front();
    fan_out = std::make_unique<FanOut>(std::move(sinks));
    return fan_out.get();
  }
};

bool Verification::examines(const FileReport& file) const {
  return (options_.numbers || options_.tensor_digests) && structure_.tensors.contains(file.name);
}

// What the state file knows of an unchanged file, if it answers everything that is asked now.
std::optional<VerifyState::Entry> Verification::recall(const FileReport& file) const {
  if (!state_ || options_.full) return std::nullopt;
  auto entry = state_->find(file.path, file.identity, kind_of(file));
  if (!entry) return std::nullopt;
  if (examines(file) && options_.numbers && !entry->numbers) return std::nullopt;
  if (examines(file) && options_.tensor_digests && !entry->tensor_digests) return std::nullopt;
  // A file known to be bad is read again where the damaged ranges can be named.
  const bool bad = file.expected && entry->digest != *file.expected;
  if (bad && chunks_.contains(file.name)) return std::nullopt;
  return entry;
}

void Verification::reuse(FileReport& file, VerifyState::Entry&& entry) {
  file.reused = true;
  file.actual = entry.digest;
  file.tensors = std::move(entry.tensors);
  add_number_findings(file);
  report_.bytes_reused += file.size;
  judge(file);
}

Verification::Reading Verification::listen_to(const FileReport& file) const {
  Reading reading;
  if (examines(file)) {
    reading.tensors = std::make_unique<TensorSink>(
        structure_.tensors.at(file.name),
        TensorExamination{.numbers = options_.numbers, .digests = options_.tensor_digests});
  }
  if (chunks_.contains(file.name)) {
    reading.chunks = std::make_unique<ChunkSink>(report_.expectation.chunk_bytes);
  }
  // Object ids belong to small files, in which zeros are their digest's concern alone.
  if (file.expected && file.expected->kind == DigestKind::sha256) {
    reading.zeros = std::make_unique<ZeroRunSink>();
  }
  return reading;
}

void Verification::hash() {
  const std::int64_t started_ns = wall_clock_ns();
  std::vector<HashJob> jobs;
  std::vector<Reading> readings;
  std::vector<std::size_t> files;  // of each job
  std::uint64_t total = 0;
  for (const std::size_t i : to_hash_) {
    FileReport& file = report_.files[i];
    if (auto entry = recall(file)) {
      reuse(file, std::move(*entry));
      continue;
    }
    readings.push_back(listen_to(file));
    jobs.push_back({.path = file.path, .kind = kind_of(file), .sink = readings.back().sink()});
    files.push_back(i);
    total += file.size;
  }
  progress_ = std::make_unique<Progress>(options_.progress, "verifying", total);
  const HashOptions hash_options{
      .jobs = options_.jobs, .keep_cache = options_.keep_cache, .progress = progress_.get()};
  hash_files(jobs, hash_options, [&](std::size_t j, HashResult&& result) {
    take_result(report_.files[files[j]], std::move(result), readings[j], started_ns);
    readings[j] = {};
  });
  progress_.reset();
  report_.interrupted = interrupted();
  if (state_) state_->save();
}

void Verification::take_result(FileReport& file, HashResult&& result, Reading& reading,
                               std::int64_t started_ns) {
  if (result.error) {
    file.status = FileStatus::unreadable;
    file.diagnosis = result.error->message();
    announce(file);
    return;
  }
  if (!result.complete) return;  // interrupted: settle_unhashed() speaks of it
  report_.bytes_hashed += result.bytes;
  file.identity = result.identity;
  file.size = result.identity.size;
  file.actual = result.digest;
  if (reading.tensors) file.tensors = reading.tensors->take_results();
  add_number_findings(file);
  if (result.changed) {
    file.status = FileStatus::failed;
    file.diagnosis = "changed while it was being read";
    file.remedy = "wait until nothing writes to it, then verify again";
    announce(file);
    return;
  }
  if (state_) {
    state_->record(file.path,
                   {.identity = result.identity,
                    .digest = result.digest,
                    .tensors = file.tensors,
                    .numbers = options_.numbers,
                    .tensor_digests = options_.tensor_digests},
                   started_ns);
    state_->save_occasionally();
  }
  if (reading.chunks && file.expected && *file.expected != result.digest) {
    file.damaged = damaged_ranges(reading.chunks->digests(), *chunks_.at(file.name),
                                  report_.expectation.chunk_bytes, file.size);
  }
  judge(file, reading.zeros ? reading.zeros->longest() : ZeroRun{});
}

// From the numbers kept in the report, so that a file recalled from the state is judged like one just read.
void Verification::add_number_findings(FileReport& file) const {
  if (!options_.numbers || !file.tensors.is_array()) return;
  for (const Json& tensor : file.tensors) {
    for (Finding& finding : judge_numbers(tensor, options_.allow_nonfinite)) {
      finding.file = file.name;
      file.findings.push_back(std::move(finding));
    }
  }
}

// `file.actual` is known: compare, explain, tell, for the file and for every other name of the same bytes.
void Verification::judge(FileReport& file, ZeroRun zeros) {
  const auto settle = [&](FileReport& f) {
    if (f.expected && f.actual) {
      report_.bytes_checked = true;
      if (*f.actual != *f.expected) {
        f.status = FileStatus::failed;
        try {
          const Diagnosis diagnosis = diagnose_content(File::open(f.path), f.expected_size, zeros);
          f.diagnosis = diagnosis.sentence;
          f.remedy = diagnosis.remedy;
        } catch (const Error& error) {
          f.diagnosis = error.message();
        }
      } else {
        // Its bytes are right: that some were written as holes does not matter.
        std::erase_if(f.findings, [](const Finding& finding) { return finding.code == kNeverWritten; });
      }
    }
    if (has_errors(f.findings) && f.status != FileStatus::failed) {
      f.status = FileStatus::failed;
      f.diagnosis = "holds values it should not";
    }
    announce(f);
  };
  settle(file);
  const auto same = same_as_.find(static_cast<std::size_t>(&file - report_.files.data()));
  if (same == same_as_.end()) return;
  for (const std::size_t other : same->second) {
    report_.files[other].actual = file.actual;
    report_.files[other].tensors = file.tensors;
    settle(report_.files[other]);
  }
}

// What was to be hashed and was not: --quick, an early stop, Ctrl-C.
void Verification::settle_unhashed() {
  std::vector<std::size_t> all = to_hash_;
  for (const auto& [first, others] : same_as_) all.insert(all.end(), others.begin(), others.end());
  for (const std::size_t i : all) {
    FileReport& file = report_.files[i];
    if (file.actual || file.status == FileStatus::unreadable) continue;
    if (file.status == FileStatus::ok) file.status = FileStatus::unchecked;
    report_.bytes_not_hashed += file.size;
  }
  // Files that were never meant to be hashed were not announced yet.
  for (std::size_t i = 0; i < report_.files.size(); ++i) {
    FileReport& file = report_.files[i];
    const bool settled_before = file.status == FileStatus::failed || file.status == FileStatus::missing ||
                                file.status == FileStatus::unreadable || file.actual;
    if (!settled_before) announce(file);
  }
}

// Relations that sizes alone suggest, where nothing was hashed: an unexpected file as long as the missing
// one; two files, each as long as the other should be.
void Verification::suspect_by_size() {
  std::map<std::uint64_t, std::vector<const FileReport*>> extras;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<const FileReport*>> misfits;  // is, should be
  for (const FileReport& file : report_.files) {
    if (file.status == FileStatus::extra && !file.actual && file.diagnosis.empty()) {
      extras[file.size].push_back(&file);
    } else if (file.status == FileStatus::failed && file.size > 0 &&
               file.expected_size.value_or(file.size) != file.size) {
      misfits[{file.size, *file.expected_size}].push_back(&file);
    }
  }
  for (FileReport& file : report_.files) {
    if (!file.expected_size) continue;
    if (file.status == FileStatus::missing) {
      const auto it = extras.find(*file.expected_size);
      if (it == extras.end() || it->second.size() != 1) continue;
      file.diagnosis = "is not there; " + it->second[0]->name + ", which nobody expected, has its size";
      file.remedy = "see whether it was renamed";
    } else if (file.status == FileStatus::failed && !file.actual) {
      const auto it = misfits.find({*file.expected_size, file.size});
      if (it == misfits.end() || it->second.size() != 1) continue;
      file.diagnosis = "seems swapped with " + it->second[0]->name + ": each has the other's size";
      file.remedy = "swap the two names and verify again";
    }
  }
}

// Damage that only shows when files are compared with each other: renamed, swapped, copied over.
void Verification::explain_relations() {
  suspect_by_size();
  std::map<Digest, const FileReport*> by_actual, by_expected;
  for (const FileReport& file : report_.files) {
    if (file.actual) by_actual.try_emplace(*file.actual, &file);
    if (file.expected) by_expected.try_emplace(*file.expected, &file);
  }
  for (FileReport& file : report_.files) {
    const bool wrong =
        file.status == FileStatus::missing || (file.status == FileStatus::failed && file.actual);
    if (!wrong || !file.expected || file.actual == file.expected) continue;
    const auto found = by_actual.find(*file.expected);
    const FileReport* holder = found == by_actual.end() ? nullptr : found->second;
    const auto meant = file.actual ? by_expected.find(*file.actual) : by_expected.end();
    if (file.status == FileStatus::missing && holder != nullptr) {
      const bool renamed = holder->status == FileStatus::extra;  // else it is right where it is
      file.diagnosis = "is not there under this name; its bytes are in " + holder->name;
      file.remedy = (renamed ? "rename " : "copy ") + holder->name;
    } else if (holder != nullptr) {
      const bool swapped =
          holder->expected && file.actual == holder->expected && holder->status == FileStatus::failed;
      file.diagnosis = swapped ? "is swapped with " + holder->name + ": each holds the other's bytes"
                               : "has wrong bytes; the right ones are in " + holder->name;
      file.remedy = swapped ? "swap the two names" : "copy it from there";
    } else if (meant != by_expected.end()) {
      file.diagnosis = "holds the bytes of " + meant->second->name;
      file.remedy = "download it again";
    }
  }
  drop_consequences();
}

// What the index says of a shard whose bytes are known to be wrong is a consequence, and its remedies
// mislead.
void Verification::drop_consequences() {
  std::set<std::string_view> wrong;
  for (const FileReport& file : report_.files) {
    if (file.expected && file.actual && file.actual != file.expected) wrong.insert(file.name);
  }
  std::erase_if(report_.findings, [&](const Finding& finding) {
    return finding.code.starts_with("index.") && wrong.contains(finding.file);
  });
}

}  // namespace

std::string_view status_name(FileStatus status) {
  switch (status) {
    case FileStatus::ok: return "ok";
    case FileStatus::failed: return "failed";
    case FileStatus::missing: return "missing";
    case FileStatus::extra: return "extra";
    case FileStatus::unchecked: return "unchecked";
    case FileStatus::unreadable: break;
  }
  return "unreadable";
}

std::uint64_t VerifyReport::count(FileStatus status) const {
  return static_cast<std::uint64_t>(
      std::count_if(files.begin(), files.end(), [&](const FileReport& f) { return f.status == status; }));
}

bool VerifyReport::good() const {
  const bool bad_file = std::any_of(files.begin(), files.end(), [](const FileReport& f) {
    return f.status == FileStatus::failed || f.status == FileStatus::missing ||
           f.status == FileStatus::unreadable;
  });
  return !bad_file && !interrupted && !stopped_early && !has_errors(findings);
}

VerifyReport verify(const fs::path& path, const VerifyOptions& options, VerifyObserver& observer) {
  return Verification(options, observer).run(path);
}

}  // namespace assay
