// The SHA-256 of files while they are being written, so that no second pass over them is needed when they are
// whole: each file is hashed as far as it has been written without a gap, from the pages that the kernel
// still has at hand, several files side by side on one core.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/formats/digest.h"
#include "core/formats/hash/sha256_kernels.h"
#include "core/system/file.h"

namespace assay {

// One file that is being written; it outlives its hashing.
class GrowingFile {
 public:
  GrowingFile(const AtomicFile& file, std::uint64_t bytes)
      : descriptor_(file.descriptor()), readable_(File::open(file.temporary())), bytes_(bytes) {}
  std::uint64_t bytes() const { return bytes_; }
  const Digest& digest() const { return digest_; }  // once OutputDigests::work() has handed it back

 private:
  friend class OutputDigests;
  std::uint64_t ready() const { return written_ - hashed_; }
  bool whole() const { return written_ == bytes_; }

  int descriptor_;
  File readable_;
  std::uint64_t bytes_;
  std::map<std::uint64_t, std::uint64_t> islands_;  // begin and end of what lies beyond the first gap
  std::uint64_t written_ = 0;                       // up to the first gap
  std::uint64_t hashed_ = 0, sent_ = 0;             // sent: the disk has been asked to write it
  sha256::State state_ = sha256::kInitialState;
  bool busy_ = false, done_ = false;
  Digest digest_;
};

// Safe from several threads.
class OutputDigests {
 public:
  void add(GrowingFile& file);
  // [offset, offset + bytes) lies in the file.
  void written(GrowingFile& file, std::uint64_t offset, std::uint64_t bytes);
  void all_written(GrowingFile& file) { written(file, 0, file.bytes()); }
  void forget(GrowingFile& file);

  // So much waits that hashing comes before writing more: what waits longer leaves the caches.
  bool pressing() const;
  // Hashes some of what is ready, of as many files at a time as suits the processor. Returns the files that
  // are done with; `found` says whether there was anything to do.
  std::vector<GrowingFile*> work(bool& found);

 private:
  std::vector<GrowingFile*> choose();
  void hash(const std::vector<GrowingFile*>& files);
  static void finish(GrowingFile& file, std::span<const std::byte> tail);

  mutable std::mutex mutex_;
  std::vector<GrowingFile*> files_;
};

}  // namespace assay
