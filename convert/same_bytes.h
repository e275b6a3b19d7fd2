// Are tensors that are stored twice the same bytes? Both are read once, side by side: what is the same is hashed once, for
// both, several tensors at a time as suits the processor.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "core/formats/digest.h"
#include "core/formats/hash/disk_file.h"
#include "core/system/progress.h"

namespace assay {

using ReadBytes = std::function<void(std::uint64_t at, std::span<std::byte> out)>;
// A file is open while something of it is read: a model may have more files than a process may have open.
using OpenDisk = std::function<std::shared_ptr<const DiskFile>()>;

struct StoredTwice {
  std::uint64_t bytes = 0;
  ReadBytes before, after;
  // Where `after` lies in one piece, to be read from the disk some way ahead.
  OpenDisk disk = nullptr;
  std::uint64_t disk_offset = 0;
  // Codes of a byte that are no finite number, beside their sign: from this on (E4M3 0x7F, E5M2 0x7C); 0x80: there are none.
  std::uint8_t first_non_finite = 0x80;
};

struct ReadTwice {
  Digest before, after;  // SHA-256; equal where the bytes are, and there alone
  bool finite = true;    // no code was met that is no finite number
};

// In the order of `pairs`. Throws Interrupted when asked to stop.
std::vector<ReadTwice> read_twice(std::span<const StoredTwice> pairs, int jobs, Progress& progress);

class PairQueue;

// Pairs that become known one after the other, and are read meanwhile by threads of its own.
class ReadingTwice {
 public:
  explicit ReadingTwice(int jobs);
  ReadingTwice(const ReadingTwice&) = delete;
  ReadingTwice& operator=(const ReadingTwice&) = delete;
  ~ReadingTwice();  // what has not been read is left

  // Safe from several threads. `result` outlives this.
  void add(StoredTwice pair, ReadTwice& result);
  // Waits until all has been read; nothing is to be added any more. Throws what reading threw.
  void finish();

 private:
  std::unique_ptr<PairQueue> queue_;
  ReadPool pool_;
  Progress unseen_;
  std::vector<std::future<void>> readers_;
};

}  // namespace assay
