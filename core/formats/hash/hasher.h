// Hashes many files at the speed of the disk: one lane a file, several lanes a thread, lanes refilled.
//
// Each byte is read once. Whoever else wants to see the bytes (number statistics, tensor and chunk digests)
// hangs a ByteSink on the job and is fed from the same buffer, in order, on the thread that hashes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/progress.h"

namespace assay {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void consume(std::span<const std::byte> bytes) = 0;  // consecutive pieces of the file, from byte 0
  virtual void finish() {}                                     // after the last piece of a complete read
  // Memory of its own, into which the next piece may be read, to be consumed where it lies; empty: none. Asked of
  // sinks that make the file's digest, before each piece.
  virtual std::span<std::byte> room() { return {}; }
};

// Bytes [begin, end) of a file, no further than it goes.
struct FileSpan {
  std::uint64_t begin = 0, end = UINT64_MAX;
};

struct HashJob {
  fs::path path;
  DigestKind kind = DigestKind::sha256;    // of shards and xet: no digest is made but by the sink
  ByteSink* sink = nullptr;                // not owned
  std::optional<std::uint64_t> size = {};  // where it is known already; the largest file is begun first
  FileSpan span = {};                      // of the file these bytes alone
};

// Jobs that are made when their turn comes: of a million files no list of paths is kept, nor a sink of each.
struct HashJobs {
  std::size_t count = 0;
  std::function<std::uint64_t(std::size_t)> size;  // the largest file is begun first
  std::function<HashJob(std::size_t)> job;         // called by any thread, also several at once
};

struct HashResult {
  Digest digest;
  std::uint64_t bytes = 0;     // hashed
  FileIdentity identity;       // when opened
  bool changed = false;        // identity differs at the end, or the length read is not the length opened
  std::optional<Error> error;  // open or read failed; the digest is meaningless
  bool complete = false;       // false: error, or interrupted before the end (or before the start)
};

struct HashOptions {
  int jobs = 1;
  bool keep_cache = false;       // leave what was read in the page cache for the loader that follows
  Progress* progress = nullptr;  // bytes are added as they are hashed
  std::string_view kernel =
      {};  // one SHA-256 kernel by name (core/formats/hash/sha256_kernels.h); empty: by measurement
};

// Hashes every job, largest first, and calls `done(index into jobs, result)` once for each, as it ends: one
// call at a time, from any thread. Per-file failures, and an Error thrown by a sink, are results; what else a
// sink or `done` throws ends the run and is rethrown here. Stops early, with incomplete results, when
// interrupted() (core/system/threads.h) becomes true.
void hash_jobs(const HashJobs& jobs, const HashOptions& options,
               const std::function<void(std::size_t, HashResult&&)>& done);
void hash_files(std::span<const HashJob> jobs, const HashOptions& options,
                const std::function<void(std::size_t, HashResult&&)>& done);

}  // namespace assay
