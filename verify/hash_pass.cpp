#include "verify/hash_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/threads.h"
#include "verify/code_files.h"
#include "verify/diagnose.h"
#include "verify/survey.h"
#include "verify/tensor_sinks.h"
#include "verify/xet_check.h"
#include "verify/zero_runs.h"

namespace assay {

namespace {

// What the state file keeps: of shards it would have to keep their size as well.
bool is_kept(DigestKind kind) {
  return kind == DigestKind::sha256 || kind == DigestKind::git_sha1;
}

// Looks for code in the beginning of a small file: in its first piece, which holds all that is looked at.
class CodeSink : public ByteSink {
 public:
  CodeSink(const FileReport& file, fs::path path) : file_(file), path_(std::move(path)) {}
  void consume(std::span<const std::byte> bytes) override {
    if (!std::exchange(looked_, true)) findings_ = code_by_content(file_.name, path_, bytes, file_.size());
  }
  Findings take() { return std::move(findings_); }

 private:
  const FileReport& file_;
  const fs::path path_;
  bool looked_ = false;
  Findings findings_;
};

}  // namespace

// The listeners of one file's bytes.
struct HashPass::Reading {
  std::unique_ptr<CodeSink> code;
  std::unique_ptr<TensorSink> tensors;
  std::unique_ptr<ChunkSink> chunks;
  std::unique_ptr<ZeroRunSink> zeros;
  std::unique_ptr<XetSink> xet;
  std::unique_ptr<ClaimSink> claims;
  std::unique_ptr<FanOut> fan_out;
  ByteSink* sink() {
    std::vector<ByteSink*> sinks;
    if (code) sinks.push_back(code.get());
    if (zeros) sinks.push_back(zeros.get());
    if (tensors) sinks.push_back(tensors.get());
    if (chunks) sinks.push_back(chunks.get());
    if (claims) sinks.push_back(claims.get());
    if (xet) sinks.push_back(xet.get());
    if (sinks.size() < 2) return sinks.empty() ? nullptr : sinks.front();
    fan_out = std::make_unique<FanOut>(std::move(sinks));
    return fan_out.get();
  }
};

HashPass::HashPass(VerifyReport& report, const Structure& structure, const VerifyOptions& options,
                   VerifyObserver& observer, std::vector<char> code_unseen)
    : report_(report),
      structure_(structure),
      options_(options),
      observer_(observer),
      code_unseen_(std::move(code_unseen)),
      missing_(report) {
  if (options_.state) state_ = std::make_unique<VerifyState>(*options_.state);
  for (std::uint32_t i = 0; i < report_.files.size(); ++i) {
    const FileReport& file = report_.files[i];
    if (report_.parts.contains(file.name)) continue;  // read_parts() does
    const bool looked_at =
        examines(file) || options_.xet || !claims_of(file).empty() || options_.compared_pieces > 0;
    const bool wanted = (file.expected && file.status == FileStatus::ok) || may_say_more(file) ||
                        missing_.kind_sought(file) || (looked_at && file.has_bytes());
    if (wanted) to_hash_.push_back(i);
  }
  find_same_files();
}

// Several names of the same bytes are read once. Names differ, and so do files that lie under their names:
// only where some lie elsewhere, as a hub cache's blobs do, may two be one.
void HashPass::find_same_files() {
  const auto elsewhere = [&](std::uint32_t i) { return !report_.files[i].elsewhere().empty(); };
  if (std::none_of(to_hash_.begin(), to_hash_.end(), elsewhere)) return;
  std::map<DigestKind, std::unordered_map<std::string, std::size_t>> seen;
  std::erase_if(to_hash_, [&](std::uint32_t i) {
    const FileReport& file = report_.files[i];
    const auto [it, fresh] = seen[kind_of(file)].try_emplace(report_.path_of(file).native(), i);
    const bool same = !fresh && claims_of(file) == claims_of(report_.files[it->second]);
    if (same) same_as_[it->second].push_back(i);
    return same;
  });
}

bool HashPass::may_say_more(const FileReport& file) const {
  if (file.status != FileStatus::failed || !file.expected || file.actual()) return false;
  const bool wrong_size = file.expected_size() && file.size() > 0 && file.size() != *file.expected_size();
  return file.malformed || (wrong_size && !file.chunks().empty());
}

DigestKind HashPass::kind_of(const FileReport& file) const {
  if (file.expected) return file.expected->kind;
  if (options_.compared_pieces > 0) return DigestKind::shards;
  return missing_.kind_sought(file).value_or(options_.xet ? DigestKind::xet : DigestKind::sha256);
}

std::uint64_t HashPass::bytes() const {
  std::uint64_t sum = 0;
  for (const std::size_t i : to_hash_) sum += report_.files[i].size();
  return sum;
}

bool HashPass::examines(const FileReport& file) const {
  return (options_.numbers || options_.tensor_digests) && structure_.tensors.contains(file.name);
}

const FileClaims& HashPass::claims_of(const FileReport& file) const {
  static const FileClaims kNone;
  const auto find_in = [&](const FileClaimsByName& claims) {
    const auto it = claims.find(file.name);
    return it == claims.end() ? nullptr : &it->second;
  };
  if (const FileClaims* said = find_in(report_.expectation.claims)) return *said;
  // What a file says of itself adds nothing to what others say of it.
  const FileClaims* declared = file.expected ? nullptr : find_in(structure_.declared);
  return declared != nullptr ? *declared : kNone;
}

// What the state file knows of an unchanged file, if it answers everything that is asked now.
std::optional<StateEntry> HashPass::recall(const FileReport& file) const {
  if (!state_ || options_.full || options_.xet || !is_kept(kind_of(file)) || !claims_of(file).empty())
    return std::nullopt;
  auto entry = state_->find(report_.path_of(file), file.identity(), kind_of(file));
  if (!entry) return std::nullopt;
  if (examines(file) && options_.numbers && !entry->numbers) return std::nullopt;
  if (examines(file) && options_.tensor_digests && !entry->tensor_digests) return std::nullopt;
  // A file known to be bad is read again where the damaged ranges can be named.
  const bool bad = file.expected && entry->digest != *file.expected;
  if (bad && !file.chunks().empty()) return std::nullopt;
  return entry;
}

void HashPass::reuse(FileReport& file, StateEntry&& entry) {
  file.reused = true;
  file.set_actual(entry.digest);
  if (!entry.tensors.empty()) file.set_tensors(read_tensor_reports(entry.tensors, *options_.state));
  add_number_findings(file);
  report_.bytes_reused += file.size();
  judge(file);
}

HashPass::Reading HashPass::listen_to(const FileReport& file) const {
  Reading reading;
  if (code_unseen_[index_of(file)]) reading.code = std::make_unique<CodeSink>(file, report_.path_of(file));
  if (examines(file)) {
    reading.tensors = std::make_unique<TensorSink>(
        structure_.tensors.at(file.name),
        TensorExamination{.numbers = options_.numbers, .digests = options_.tensor_digests});
  }
  if (!file.chunks().empty()) {
    reading.chunks = std::make_unique<ChunkSink>(report_.expectation.chunk_bytes, SIZE_MAX,
                                                 report_.expectation.chunk_kind);
  } else if (kind_of(file) == DigestKind::shards) {
    reading.chunks = std::make_unique<ChunkSink>(options_.compared_pieces);
  }
  // Threads that other files leave idle work at this one.
  if (options_.xet || kind_of(file) == DigestKind::xet)
    reading.xet = std::make_unique<XetSink>(
        options_.jobs /
        static_cast<int>(std::min<std::size_t>(to_hash_.size(), static_cast<std::size_t>(options_.jobs))));
  if (const FileClaims& claims = claims_of(file); !claims.empty()) {
    const auto tensors = structure_.tensors.find(file.name);
    reading.claims = std::make_unique<ClaimSink>(
        claims, tensors == structure_.tensors.end() ? std::span<const TensorRange>() : tensors->second);
  }
  // Object ids belong to small files, in which zeros are their digest's concern alone.
  if (file.expected && file.expected->kind != DigestKind::git_sha1 && file.size() >= kZeroRun) {
    reading.zeros = std::make_unique<ZeroRunSink>();
  }
  return reading;
}

void HashPass::run() {
  const std::int64_t started_ns = wall_clock_ns();
  std::vector<std::uint32_t> unknown;
  const std::span<const std::uint32_t> files = not_remembered(unknown);
  std::uint64_t total = 0;
  for (const std::uint32_t i : files) total += report_.files[i].size();
  progress_ = std::make_unique<Progress>(options_.progress, "verifying", total);
  // Threads that files leave over work at Xet hashes: none is left to read ahead.
  const bool all_taken = options_.xet || std::any_of(files.begin(), files.end(), [&](std::uint32_t i) {
                           return kind_of(report_.files[i]) == DigestKind::xet;
                         });
  const auto most = static_cast<int>(std::min<std::size_t>(files.size(), INT_MAX));
  const HashOptions hash_options{.jobs = all_taken ? std::min(options_.jobs, most) : options_.jobs,
                                 .keep_cache = options_.keep_cache,
                                 .progress = progress_.get()};
  std::mutex mutex;
  std::unordered_map<std::size_t, Reading> open;  // of the files being read
  const HashJobs jobs{.count = files.size(),
                      .size = [&](std::size_t j) { return report_.files[files[j]].size(); },
                      .job =
                          [&](std::size_t j) {
                            const FileReport& file = report_.files[files[j]];
                            Reading reading = listen_to(file);
                            HashJob job{report_.path_of(file), kind_of(file), reading.sink()};
                            const std::lock_guard lock(mutex);
                            if (job.sink != nullptr) open.insert_or_assign(j, std::move(reading));
                            return job;
                          }};
  hash_jobs(jobs, hash_options, [&](std::size_t j, HashResult&& result) {
    Reading reading;
    {
      const std::lock_guard lock(mutex);
      if (auto node = open.extract(j)) reading = std::move(node.mapped());
    }
    take_result(report_.files[files[j]], std::move(result), reading, started_ns);
  });
  progress_.reset();
  tell_agreements();
  report_.interrupted = interrupted();
  if (state_) save_state();
}

// The files to read: all but those whose digest the state file knows; without one, the list itself.
std::span<const std::uint32_t> HashPass::not_remembered(std::vector<std::uint32_t>& files) {
  if (!state_) return to_hash_;
  for (const std::uint32_t i : to_hash_) {
    FileReport& file = report_.files[i];
    if (auto entry = recall(file)) {
      reuse(file, std::move(*entry));
      continue;
    }
    if (is_open_for_writing(report_.path_of(file))) written_to_.insert(file.name);
    files.push_back(i);
  }
  return files;
}

void HashPass::take_result(FileReport& file, HashResult&& result, Reading& reading, std::int64_t started_ns) {
  if (result.error) {
    file.status = FileStatus::unreadable;
    file.tell(sentence_of(*result.error), std::string(file.remedy()));
    announce(file);
    return;
  }
  if (!result.complete) return;  // interrupted: settle_unhashed() speaks of it
  report_.bytes_hashed += result.bytes;
  file.set_identity(result.identity);
  if (reading.chunks && kind_of(file) == DigestKind::shards)
    result.digest = digest_of_chunks(reading.chunks->digests());
  if (reading.chunks && !file.expected) report_.piece_digests[file.name] = reading.chunks->digests();
  if (reading.xet) {
    file.set_made_xet(reading.xet->digests());
    if (kind_of(file) == DigestKind::xet) result.digest = that_of(reading.xet->digests(), file.expected);
  }
  file.set_actual(result.digest);
  if (reading.code) {
    file.add(reading.code->take());
    code_unseen_[index_of(file)] = false;
  }
  if (reading.tensors) file.set_tensors(reading.tensors->take_results());
  add_number_findings(file);
  if (result.changed) {
    file.status = FileStatus::failed;
    file.tell("changed while it was being read", "wait until nothing writes to it, then verify again");
    announce(file);
    return;
  }
  if (state_) remember(file, started_ns);
  if (reading.chunks && file.expected && *file.expected != result.digest) {
    file.set_damaged(damaged_ranges(reading.chunks->digests(), file.chunks(), report_.expectation.chunk_bytes,
                                    file.expected_size().value_or(file.size())));
  }
  if (reading.claims) hold_to_claims(file, reading.claims->take());
  judge(file, reading.zeros ? reading.zeros->longest() : ZeroRun{});
}

// For the file and for every other name of the same bytes. Where its digest says already that it is not what it should
// be, nothing else is to be learnt from its contents.
void HashPass::hold_to_claims(FileReport& file, ClaimOutcome outcome) {
  std::vector<FileReport*> files = {&file};
  if (const auto same = same_as_.find(index_of(file)); same != same_as_.end()) {
    for (const std::size_t i : same->second) files.push_back(&report_.files[i]);
  }
  for (FileReport* one : files) {
    if (one->expected && *one->expected != *file.actual()) continue;
    Findings findings = outcome.findings;
    for (Finding& finding : findings) finding.file = one->name;
    one->add(std::move(findings));
    if (!outcome.diagnosis.empty() && one->has_bytes()) {
      one->status = FileStatus::failed;
      one->tell(outcome.diagnosis, outcome.remedy);
    }
    if (!outcome.diagnosis.empty()) continue;
    for (const std::string& agreed : outcome.agreed) agreements_[agreed].push_back(one->name);
  }
}

// What agrees with a claim alone is told, for it is no proof.
void HashPass::tell_agreements() {
  for (const auto& [what, files] : agreements_) {
    report_.findings.push_back(
        {.severity = Severity::note,
         .code = "claim.consistent",
         .message = files.size() == 1 ? fmt::format("is consistent with {}", what)
                                      : fmt::format("{} files are consistent with {}", files.size(), what),
         .file = files.size() == 1 ? files[0] : std::string()});
  }
  agreements_.clear();
}

// Not what somebody was writing to when the pass began: what is written between then and now, and by whom,
// its time stamps may not tell.
void HashPass::remember(const FileReport& file, std::int64_t started_ns) {
  if (written_to_.contains(file.name) || !is_kept(kind_of(file))) return;
  state_->record(report_.path_of(file),
                 {.identity = file.identity(),
                  .digest = *file.actual(),
                  .tensors = file.tensors() ? dump_json(to_json(*file.tensors()), -1) : std::string(),
                  .numbers = options_.numbers,
                  .tensor_digests = options_.tensor_digests},
                 started_ns);
  state_->save_occasionally();
}

void HashPass::save_state() {
  state_->save();
  if (state_->failure().empty()) return;
  report_.findings.push_back({.severity = Severity::warning,
                              .code = "state.not_saved",
                              .message = "could not be written: " + state_->failure(),
                              .file = options_.state->string(),
                              .remedy = "the next run reads everything again; free some space"});
}

// From the numbers kept in the report, so that a file recalled from the state is judged like one just read.
void HashPass::add_number_findings(FileReport& file) const {
  if (!options_.numbers || !file.tensors()) return;
  for (const TensorReport& tensor : *file.tensors()) {
    Findings findings = judge_numbers(tensor, options_.allow_nonfinite);
    for (Finding& finding : findings) finding.file = file.name;
    file.add(std::move(findings));
  }
}

// `file.actual()` is known: compare, explain, tell, for the file and for every other name of the same bytes.
void HashPass::judge(FileReport& file, ZeroRun zeros) {
  settle(file, zeros);
  const auto same = same_as_.find(index_of(file));
  if (same == same_as_.end()) return;
  for (const std::size_t other : same->second) {
    report_.files[other].set_actual(*file.actual());
    if (file.tensors()) report_.files[other].set_tensors(*file.tensors());
    if (file.xet().made) report_.files[other].set_made_xet(*file.xet().made);
    settle(report_.files[other], zeros);
  }
}

void HashPass::settle(FileReport& file, ZeroRun zeros) {
  if (file.expected && file.actual()) {
    report_.bytes_checked = true;
    if (*file.actual() != *file.expected && file.status == FileStatus::failed) {
      // Malformed or of the wrong size: said already, and more to the point than that its bytes are wrong.
    } else if (*file.actual() != *file.expected) {
      file.status = FileStatus::failed;
      try {
        const File content = File::open(report_.path_of(file));
        Diagnosis diagnosis = diagnose_cheaply(content, file.expected_size(), file.expected);
        if (!diagnosis) diagnosis = diagnose_content(content, file.expected_size(), zeros);
        file.tell(diagnosis.sentence, diagnosis.remedy);
        if (file.expected->kind == DigestKind::xet) tell_of_xet(file);
      } catch (const Error& error) {
        file.tell(sentence_of(error), std::string(file.remedy()));
      }
    } else {
      if (file.malformed) {
        const std::string_view why = file.diagnosis().substr(std::string_view("is malformed: ").size());
        file.tell("is exactly what the publisher has; malformed there: " + std::string(why),
                  "downloading it again gives the same: ask its publisher");
      }
      // Its bytes are right: that some were written as holes does not matter.
      file.drop_findings(kNeverWritten);
    }
  }
  if (has_errors(file.findings()) && file.status != FileStatus::failed) {
    file.status = FileStatus::failed;
    file.tell("holds values it should not", std::string(file.remedy()));
  }
  announce(file);
}

void HashPass::settle_one(FileReport& file) {
  if (file.actual() || file.status == FileStatus::unreadable) return;
  if (file.status == FileStatus::ok) file.status = FileStatus::unchecked;
  report_.bytes_not_hashed += file.size();
}

void HashPass::settle_unhashed() {
  for (const std::uint32_t i : to_hash_) settle_one(report_.files[i]);
  for (const auto& [first, others] : same_as_) {
    for (const std::size_t i : others) settle_one(report_.files[i]);
  }
  for (std::size_t i = 0; i < report_.files.size(); ++i) {
    FileReport& file = report_.files[i];
    if (!code_unseen_[i] || !file.has_bytes()) continue;
    file.add(find_code(file.name, report_.path_of(file), false));
  }
  // Files that were never meant to be hashed were not announced yet.
  for (std::size_t i = 0; i < report_.files.size(); ++i) {
    FileReport& file = report_.files[i];
    const bool settled_before = file.status == FileStatus::failed || file.status == FileStatus::missing ||
                                file.status == FileStatus::unreadable || file.actual();
    if (!settled_before || may_say_more(file)) announce(file);
  }
}

}  // namespace assay
