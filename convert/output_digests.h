// The SHA-256 of files while they are being written, so that no second pass over them is needed when they are
// whole: each file is hashed as far as it has been written without a gap, from the memory that its writers
// left or the pages that the kernel still has at hand, several files side by side on one core.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/formats/digest.h"
#include "core/formats/hash/message.h"
#include "core/system/file.h"
#include "core/system/scratch.h"

namespace assay {

// A file that is being written, or a run of bytes of one; it outlives its hashing. Offsets are its own.
class GrowingFile {
 public:
  GrowingFile(const AtomicFile& file, std::uint64_t bytes)
      : GrowingFile(std::make_shared<const File>(File::open(file.temporary())), 0, bytes) {}
  GrowingFile(std::shared_ptr<const File> readable, std::uint64_t begin, std::uint64_t bytes)
      : readable_(std::move(readable)), begin_(begin), bytes_(bytes) {}
  std::uint64_t bytes() const { return bytes_; }
  const std::shared_ptr<const File>& readable() const { return readable_; }
  const Digest& digest() const { return digest_; }  // once OutputDigests::work() has handed it back

 private:
  friend class OutputDigests;
  friend class HashLane;
  struct Kept {
    std::uint64_t begin, end;
    Scratch<std::byte> memory;
  };
  std::uint64_t hashed() const { return message_.length(); }
  std::uint64_t ready() const { return written_ - hashed(); }
  bool whole() const { return written_ == bytes_; }

  std::shared_ptr<const File> readable_;
  std::uint64_t begin_, bytes_;
  std::map<std::uint64_t, std::uint64_t> islands_;  // begin and end of what lies beyond the first gap
  std::map<std::uint64_t, Kept> kept_;              // by where they begin
  std::deque<Kept> next_;      // those in reach: whoever has made it busy_ alone sees them
  std::uint64_t written_ = 0;  // up to the first gap
  std::uint64_t sent_ = 0;     // the disk has been asked to write it
  sha256::Message message_;
  bool busy_ = false, done_ = false;
  Digest digest_;
};

// Asks the disk to take what is complete, so that less is left to wait for when a file is closed. It is a
// hint, but the kernel may keep whoever gives it waiting: hence a thread of its own.
class EarlyFlush {
 public:
  EarlyFlush() : thread_([this](const std::stop_token& stop) { work(stop); }) {}
  void add(std::shared_ptr<const File> file, std::uint64_t offset, std::uint64_t bytes);

 private:
  struct Range {
    std::shared_ptr<const File> file;
    std::uint64_t offset, bytes;
  };
  void work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any something_new_;
  std::deque<Range> waiting_;
  std::jthread thread_;  // the last member: it uses the others
};

// Safe from several threads.
class OutputDigests {
 public:
  void add(GrowingFile& file);
  // [offset, offset + bytes) lies in the file.
  void written(GrowingFile& file, std::uint64_t offset, std::uint64_t bytes);
  // The same, of the first `bytes` of `memory`, which may be kept until they are hashed and exchanged for
  // other.
  void written(GrowingFile& file, std::uint64_t offset, std::uint64_t bytes, Scratch<std::byte>& memory);
  void all_written(GrowingFile& file) { written(file, 0, file.bytes()); }
  void forget(GrowingFile& file);

  // So much waits that hashing comes before writing more: what waits longer leaves the caches.
  bool pressing() const;
  // Hashes some of what is ready, of as many files at a time as suits the processor. Returns the files that
  // are done with; `found` says whether there was anything to do.
  std::vector<GrowingFile*> work(bool& found);

 private:
  void extend(GrowingFile& file, std::uint64_t offset, std::uint64_t bytes);
  std::vector<GrowingFile*> choose();
  void hash(const std::vector<GrowingFile*>& files);
  void give_back(GrowingFile::Kept kept);

  mutable std::mutex mutex_;
  std::vector<GrowingFile*> files_;
  std::uint64_t kept_bytes_ = 0;
  std::vector<Scratch<std::byte>> spare_;
  EarlyFlush flush_;
};

}  // namespace assay
