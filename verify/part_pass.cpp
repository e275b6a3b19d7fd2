#include "verify/part_pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/hash/hasher.h"
#include "core/system/error.h"
#include "core/system/progress.h"
#include "core/system/threads.h"
#include "verify/diagnose.h"

namespace assay {
namespace {

struct Chunk {
  FileReport* file = nullptr;
  std::size_t number = 0;  // in its file
  ByteRange bytes;
};

class PartPass {
 public:
  PartPass(VerifyReport& report, const VerifyOptions& options, VerifyObserver& observer)
      : report_(report), options_(options), observer_(observer) {
    for (FileReport& file : report_.files) {
      const auto parts = report_.parts.find(file.name);
      if (parts == report_.parts.end()) continue;
      const bool wrong_size = file.status == FileStatus::failed && file.size() > 0 && !file.malformed;
      if (file.has_bytes() || wrong_size) add(file, parts->second);
    }
  }

  void run() {
    if (options_.quick || report_.stopped_early) {
      for (const Chunk& chunk : chunks_) leave_out(chunk);
      return;
    }
    std::uint64_t total = 0;
    for (const Chunk& chunk : chunks_) total += chunk.bytes.end - chunk.bytes.begin;
    Progress progress(options_.progress, "verifying", total);
    const HashOptions hash_options{
        .jobs = options_.jobs, .keep_cache = options_.keep_cache, .progress = &progress};
    const HashJobs jobs{.count = chunks_.size(),
                        .size = [&](std::size_t i) { return chunks_[i].bytes.end - chunks_[i].bytes.begin; },
                        .job =
                            [&](std::size_t i) {
                              HashJob job{report_.path_of(*chunks_[i].file), report_.expectation.chunk_kind};
                              job.span = {chunks_[i].bytes.begin, chunks_[i].bytes.end};
                              return job;
                            }};
    hash_jobs(jobs, hash_options,
              [&](std::size_t i, HashResult&& result) { take(chunks_[i], std::move(result)); });
    report_.interrupted = report_.interrupted || interrupted();
    for (auto& [file, damage] : damaged_) settle(*file, std::move(damage));
  }

 private:
  void add(FileReport& file, const std::vector<ByteRange>& parts) {
    const std::uint64_t chunk_bytes = report_.expectation.chunk_bytes;
    for (const ByteRange& part : parts) {
      for (const ByteRange& bytes : chunks_of(part, chunk_bytes))
        chunks_.push_back({&file, static_cast<std::size_t>(bytes.begin / chunk_bytes), bytes});
    }
  }

  void leave_out(const Chunk& chunk) {
    if (chunk.file->status == FileStatus::ok) chunk.file->status = FileStatus::unchecked;
    report_.bytes_not_hashed += chunk.bytes.end - chunk.bytes.begin;
  }

  void take(const Chunk& chunk, HashResult&& result) {
    FileReport& file = *chunk.file;
    if (result.error) {
      if (file.status == FileStatus::unreadable) return;
      file.status = FileStatus::unreadable;
      file.tell(sentence_of(*result.error));
      return observer_.settled(file, nullptr);
    }
    if (!result.complete) return leave_out(chunk);
    report_.bytes_hashed += result.bytes;
    report_.bytes_checked = true;
    if (result.digest.bytes != file.chunks()[chunk.number].bytes || result.changed)
      damaged_[&file].push_back(chunk.bytes);
  }

  void settle(FileReport& file, std::vector<ByteRange> damage) {
    std::sort(damage.begin(), damage.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::vector<ByteRange> joined;
    for (const ByteRange& range : damage) {
      if (!joined.empty() && joined.back().end == range.begin)
        joined.back().end = range.end;
      else
        joined.push_back(range);
    }
    const bool said = file.status == FileStatus::failed || file.status == FileStatus::unreadable;
    if (!said)
      file.tell(fmt::format("differs in {} of the ranges that were read here, the first at byte {}",
                            joined.size(), joined.front().begin));
    file.set_damaged(std::move(joined));
    if (said) return;
    file.status = FileStatus::failed;
    observer_.settled(file, nullptr);
  }

  VerifyReport& report_;
  const VerifyOptions& options_;
  VerifyObserver& observer_;
  std::vector<Chunk> chunks_;
  std::map<FileReport*, std::vector<ByteRange>> damaged_;
};

}  // namespace

void read_parts(VerifyReport& report, const VerifyOptions& options, VerifyObserver& observer) {
  PartPass(report, options, observer).run();
}

}  // namespace assay
