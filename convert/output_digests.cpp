#include "convert/output_digests.h"

#include <fcntl.h>

#include <algorithm>

#include "core/formats/hash/kernel_plan.h"

namespace assay {
namespace {

constexpr std::uint64_t kLeast = 256 << 10;  // that a file must have ready to be taken up before it is whole
constexpr std::uint64_t kTurn = 1 << 20;     // of each file, before others are looked at
constexpr std::uint64_t kAtOnce = 64 << 10;  // read and hashed: a few of these fit a second-level cache
constexpr std::uint64_t kMuch = 8 << 20;     // ready in one file
constexpr std::uint64_t kToDisk = 32 << 20;  // hashed, and so complete: the disk may have it
// Cache lines by which a lane's buffer is moved: equal offsets of the lanes then fall into different cache
// sets.
constexpr std::size_t kStagger = 9 * 64;

std::size_t lanes() {
  return static_cast<std::size_t>(std::min(4, sha256::KernelPlan::measured().lanes()));
}

}  // namespace

void OutputDigests::add(GrowingFile& file) {
  const std::lock_guard lock(mutex_);
  files_.push_back(&file);
}

void OutputDigests::forget(GrowingFile& file) {
  const std::lock_guard lock(mutex_);
  std::erase(files_, &file);
}

void OutputDigests::written(GrowingFile& file, std::uint64_t offset, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (offset > file.written_) {
    file.islands_.emplace(offset, offset + bytes);
    return;
  }
  file.written_ = std::max(file.written_, offset + bytes);
  while (!file.islands_.empty() && file.islands_.begin()->first <= file.written_) {
    file.written_ = std::max(file.written_, file.islands_.begin()->second);
    file.islands_.erase(file.islands_.begin());
  }
}

// Where all the files can be hashed side by side, or one has much to hash.
bool OutputDigests::pressing() const {
  const std::lock_guard lock(mutex_);
  std::size_t ready = 0, open = 0;
  for (const GrowingFile* file : files_) {
    if (file->busy_) continue;
    ++open;
    ready += file->ready() >= kTurn || file->whole() ? 1 : 0;
    if (file->ready() >= kMuch) return true;
  }
  return ready > 0 && ready >= std::min(open, lanes());
}

std::vector<GrowingFile*> OutputDigests::choose() {
  const std::lock_guard lock(mutex_);
  std::vector<GrowingFile*> chosen;
  for (GrowingFile* file : files_) {
    if (!file->busy_ && (file->ready() >= kLeast || file->whole())) chosen.push_back(file);
  }
  // Those with most to hash: they go furthest together.
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const GrowingFile* a, const GrowingFile* b) { return a->ready() > b->ready(); });
  if (chosen.size() > lanes()) chosen.resize(lanes());
  for (GrowingFile* file : chosen) file->busy_ = true;
  return chosen;
}

std::vector<GrowingFile*> OutputDigests::work(bool& found) {
  const std::vector<GrowingFile*> chosen = choose();
  found = !chosen.empty();
  hash(chosen);
  std::vector<GrowingFile*> done;
  const std::lock_guard lock(mutex_);
  for (GrowingFile* file : chosen) {
    file->busy_ = false;
    if (file->done_) done.push_back(file);
  }
  for (const GrowingFile* file : done) std::erase(files_, file);
  return done;
}

void OutputDigests::hash(const std::vector<GrowingFile*>& files) {
  struct Lane {
    GrowingFile* file;
    std::uint64_t goal;
    bool whole;
    std::span<std::byte> buffer;
    std::size_t size = 0;
  };
  thread_local std::vector<std::byte> memory;
  memory.resize(sha256::kMaxLanes * (kAtOnce + kStagger));
  std::vector<Lane> running;
  {
    const std::lock_guard lock(mutex_);
    for (GrowingFile* file : files) {
      const std::uint64_t goal = std::min(file->written_, file->hashed_ + kTurn);
      running.push_back({file, goal, goal == file->bytes_,
                         std::span(memory).subspan(running.size() * (kAtOnce + kStagger), kAtOnce)});
    }
  }
  while (!running.empty()) {
    std::uint64_t step = kAtOnce;
    for (const Lane& lane : running)
      step = std::min(step, (lane.goal - lane.file->hashed_) / sha256::kBlock * sha256::kBlock);
    std::array<sha256::State*, sha256::kMaxLanes> states;
    std::array<const std::byte*, sha256::kMaxLanes> data;
    for (std::size_t i = 0; i < running.size(); ++i) {
      Lane& lane = running[i];
      lane.file->readable_.read_exactly(lane.file->hashed_, lane.buffer.first(step));
      states[i] = &lane.file->state_;
      data[i] = lane.buffer.data();
      lane.file->hashed_ += step;
    }
    if (step > 0)
      sha256::KernelPlan::measured().run(std::span(states).first(running.size()),
                                         std::span(data).first(running.size()), step / sha256::kBlock);
    std::erase_if(running, [&](Lane& lane) {
      const std::uint64_t rest = lane.goal - lane.file->hashed_;
      if (rest >= sha256::kBlock) return false;
      if (lane.whole) {
        lane.file->readable_.read_exactly(lane.file->hashed_, lane.buffer.first(rest));
        finish(*lane.file, lane.buffer.first(rest));
      }
      return true;
    });
  }
  for (GrowingFile* file : files) {
    if (file->hashed_ - file->sent_ < kToDisk) continue;
    // Only a hint, so that less is left to wait for when the file is closed.
    static_cast<void>(::sync_file_range(file->descriptor_, static_cast<off64_t>(file->sent_),
                                        static_cast<off64_t>(file->hashed_ - file->sent_),
                                        SYNC_FILE_RANGE_WRITE));
    file->sent_ = file->hashed_;
  }
}

void OutputDigests::finish(GrowingFile& file, std::span<const std::byte> tail) {
  file.digest_ = {DigestKind::sha256, sha256::finish(file.state_, tail, file.bytes_)};
  file.hashed_ = file.bytes_;
  file.done_ = true;
}

}  // namespace assay
