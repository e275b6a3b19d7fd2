#include "verify/hash_pass.h"

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/threads.h"
#include "verify/diagnose.h"
#include "verify/survey.h"
#include "verify/tensor_sinks.h"
#include "verify/zero_runs.h"

namespace assay {

// The listeners of one file's bytes.
struct HashPass::Reading {
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

HashPass::HashPass(VerifyReport& report, const Structure& structure, const VerifyOptions& options,
                   VerifyObserver& observer)
    : report_(report), structure_(structure), options_(options), observer_(observer), missing_(report) {
  if (options_.state) state_ = std::make_unique<VerifyState>(*options_.state);
  for (const ExpectedFile& file : report_.expectation.files) {
    if (!file.chunks.empty()) chunks_[file.name] = &file.chunks;
  }
  std::map<std::pair<std::string, DigestKind>, std::size_t> seen;
  for (std::size_t i = 0; i < report_.files.size(); ++i) {
    FileReport& file = report_.files[i];
    const bool wanted = (file.expected && (file.status == FileStatus::ok || file.malformed)) ||
                        missing_.kind_sought(file) || (examines(file) && file.has_bytes());
    if (!wanted) continue;
    const auto [it, fresh] = seen.try_emplace({file.path.lexically_normal().string(), kind_of(file)}, i);
    if (fresh)
      to_hash_.push_back(i);
    else
      same_as_[it->second].push_back(i);
  }
}

bool HashPass::may_say_more(const FileReport& file) const {
  if (file.status != FileStatus::failed || !file.expected || file.actual) return false;
  const bool wrong_size = file.expected_size && file.size > 0 && file.size != *file.expected_size;
  return file.malformed || (wrong_size && chunks_.contains(file.name));
}

DigestKind HashPass::kind_of(const FileReport& file) const {
  if (file.expected) return file.expected->kind;
  return missing_.kind_sought(file).value_or(DigestKind::sha256);
}

std::uint64_t HashPass::bytes() const {
  std::uint64_t sum = 0;
  for (const std::size_t i : to_hash_) sum += report_.files[i].size;
  return sum;
}

bool HashPass::examines(const FileReport& file) const {
  return (options_.numbers || options_.tensor_digests) && structure_.tensors.contains(file.name);
}

// What the state file knows of an unchanged file, if it answers everything that is asked now.
std::optional<StateEntry> HashPass::recall(const FileReport& file) const {
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

void HashPass::reuse(FileReport& file, StateEntry&& entry) {
  file.reused = true;
  file.actual = entry.digest;
  if (!entry.tensors.empty()) file.tensors = parse_json(entry.tensors, *options_.state);
  add_number_findings(file);
  report_.bytes_reused += file.size;
  judge(file);
}

HashPass::Reading HashPass::listen_to(const FileReport& file) const {
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

void HashPass::run() {
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
    if (state_ && is_open_for_writing(file.path)) written_to_.insert(file.name);
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
  if (state_) save_state();
}

void HashPass::take_result(FileReport& file, HashResult&& result, Reading& reading, std::int64_t started_ns) {
  if (result.error) {
    file.status = FileStatus::unreadable;
    file.diagnosis = sentence_of(*result.error);
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
  if (state_) remember(file, started_ns);
  if (reading.chunks && file.expected && *file.expected != result.digest) {
    file.damaged = damaged_ranges(reading.chunks->digests(), *chunks_.at(file.name),
                                  report_.expectation.chunk_bytes, file.expected_size.value_or(file.size));
  }
  judge(file, reading.zeros ? reading.zeros->longest() : ZeroRun{});
}

// Not what somebody was writing to when the pass began: what is written between then and now, and by whom,
// its time stamps may not tell.
void HashPass::remember(const FileReport& file, std::int64_t started_ns) {
  if (written_to_.contains(file.name)) return;
  state_->record(file.path,
                 {.identity = file.identity,
                  .digest = *file.actual,
                  .tensors = file.tensors.is_null() ? std::string() : dump_json(file.tensors, -1),
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
  if (!options_.numbers || !file.tensors.is_array()) return;
  for (const Json& tensor : file.tensors) {
    for (Finding& finding : judge_numbers(tensor, options_.allow_nonfinite)) {
      finding.file = file.name;
      file.findings.push_back(std::move(finding));
    }
  }
}

// `file.actual` is known: compare, explain, tell, for the file and for every other name of the same bytes.
void HashPass::judge(FileReport& file, ZeroRun zeros) {
  settle(file, zeros);
  const auto same = same_as_.find(static_cast<std::size_t>(&file - report_.files.data()));
  if (same == same_as_.end()) return;
  for (const std::size_t other : same->second) {
    report_.files[other].actual = file.actual;
    report_.files[other].tensors = file.tensors;
    settle(report_.files[other], zeros);
  }
}

void HashPass::settle(FileReport& file, ZeroRun zeros) {
  if (file.expected && file.actual) {
    report_.bytes_checked = true;
    if (*file.actual != *file.expected && file.status == FileStatus::failed) {
      // Malformed or of the wrong size: said already, and more to the point than that its bytes are wrong.
    } else if (*file.actual != *file.expected) {
      file.status = FileStatus::failed;
      try {
        const Diagnosis diagnosis = diagnose_content(File::open(file.path), file.expected_size, zeros);
        file.diagnosis = diagnosis.sentence;
        file.remedy = diagnosis.remedy;
      } catch (const Error& error) {
        file.diagnosis = sentence_of(error);
      }
    } else {
      if (file.malformed) {
        file.diagnosis = "is exactly what the publisher has; malformed there: " +
                         file.diagnosis.substr(std::string_view("is malformed: ").size());
        file.remedy = "downloading it again gives the same: ask its publisher";
      }
      // Its bytes are right: that some were written as holes does not matter.
      std::erase_if(file.findings, [](const Finding& finding) { return finding.code == kNeverWritten; });
    }
  }
  if (has_errors(file.findings) && file.status != FileStatus::failed) {
    file.status = FileStatus::failed;
    file.diagnosis = "holds values it should not";
  }
  announce(file);
}

void HashPass::settle_unhashed() {
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
    if (!settled_before || may_say_more(file)) announce(file);
  }
}

}  // namespace assay
