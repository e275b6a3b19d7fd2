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
constexpr std::uint64_t kKept = 16 << 20;    // of writers' memory, of all files
constexpr std::uint64_t kWorthKeeping = 4 << 10;
// Cache lines by which a lane's buffer is moved: equal offsets of the lanes then fall into different cache
// sets.
constexpr std::size_t kStagger = 9 * 64;

std::size_t lanes() {
  return static_cast<std::size_t>(std::min(4, sha256::KernelPlan::measured().lanes()));
}

}  // namespace

// One of the files that are hashed side by side, as far as `goal`.
class HashLane {
 public:
  HashLane(GrowingFile& file, std::uint64_t goal, std::span<std::byte> buffer)
      : file_(file), goal_(goal), whole_(goal == file.bytes_), buffer_(buffer) {}

  std::uint64_t blocks() const { return (goal_ - file_.hashed_) / sha256::kBlock; }
  // How many of them lie together in memory, or are read at once.
  std::uint64_t blocks_together() {
    while (!file_.next_.empty() && file_.next_.front().end < file_.hashed_ + sha256::kBlock) drop_first();
    std::uint64_t until = file_.hashed_ + kAtOnce;
    if (!file_.next_.empty()) {
      const GrowingFile::Kept& kept = file_.next_.front();
      in_memory_ = kept.begin <= file_.hashed_;
      // Where a gap's last block reaches into what was kept, it is read as well.
      until = std::min(until, in_memory_ ? kept.end : kept.begin + sha256::kBlock - 1);
    } else {
      in_memory_ = false;
    }
    return std::min(blocks(), (until - file_.hashed_) / sha256::kBlock);
  }
  // The next bytes, of as many blocks as blocks_together() has said at most; `state` comes with them.
  const std::byte* take(std::uint64_t size, sha256::State*& state) {
    state = &file_.state_;
    const std::byte* data = buffer_.data();
    if (in_memory_)
      data = file_.next_.front().memory.take(0).data() + (file_.hashed_ - file_.next_.front().begin);
    else
      file_.readable_->read_exactly(file_.hashed_, buffer_.first(size));
    file_.hashed_ += size;
    return data;
  }
  void finish() {
    if (!whole_) return;
    const auto tail = buffer_.first(goal_ - file_.hashed_);
    file_.readable_->read_exactly(file_.hashed_, tail);
    file_.digest_ = {DigestKind::sha256, sha256::finish(file_.state_, tail, file_.bytes_)};
    file_.hashed_ = file_.bytes_;
    file_.done_ = true;
    while (!file_.next_.empty()) drop_first();
  }
  std::vector<GrowingFile::Kept> dropped;  // hashed

 private:
  void drop_first() {
    dropped.push_back(std::move(file_.next_.front()));
    file_.next_.pop_front();
  }

  GrowingFile& file_;
  std::uint64_t goal_;
  bool whole_, in_memory_ = false;
  std::span<std::byte> buffer_;
};

namespace {

// All to their goals.
void hash_together(std::vector<HashLane>& lanes) {
  std::vector<HashLane*> running;
  for (HashLane& lane : lanes) running.push_back(&lane);
  const auto stop_at_goal = [](HashLane* lane) {
    if (lane->blocks() > 0) return false;
    lane->finish();
    return true;
  };
  while (std::erase_if(running, stop_at_goal), !running.empty()) {
    std::uint64_t blocks = running.front()->blocks_together();
    for (HashLane* lane : running) blocks = std::min(blocks, lane->blocks_together());
    std::array<sha256::State*, sha256::kMaxLanes> states;
    std::array<const std::byte*, sha256::kMaxLanes> data;
    for (std::size_t i = 0; i < running.size(); ++i)
      data[i] = running[i]->take(blocks * sha256::kBlock, states[i]);
    sha256::KernelPlan::measured().run(std::span(states).first(running.size()),
                                       std::span(data).first(running.size()), blocks);
  }
}

}  // namespace

void EarlyFlush::add(std::shared_ptr<const File> file, std::uint64_t offset, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({std::move(file), offset, bytes});
  something_new_.notify_one();
}

void EarlyFlush::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (something_new_.wait(lock, stop, [&] { return !waiting_.empty(); }) && !stop.stop_requested()) {
    const Range range = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    static_cast<void>(::sync_file_range(range.file->descriptor(), static_cast<off64_t>(range.offset),
                                        static_cast<off64_t>(range.bytes), SYNC_FILE_RANGE_WRITE));
    lock.lock();
  }
}

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
  extend(file, offset, bytes);
}

void OutputDigests::written(GrowingFile& file, std::uint64_t offset, std::uint64_t bytes,
                            Scratch<std::byte>& memory) {
  const std::lock_guard lock(mutex_);
  if (kept_bytes_ + bytes <= kKept && bytes >= kWorthKeeping) {
    kept_bytes_ += bytes;
    file.kept_.emplace(offset, GrowingFile::Kept{offset, offset + bytes, std::move(memory)});
    memory = {};
    if (!spare_.empty()) {
      memory = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  extend(file, offset, bytes);
}

void OutputDigests::give_back(GrowingFile::Kept kept) {
  kept_bytes_ -= kept.end - kept.begin;
  spare_.push_back(std::move(kept.memory));
}

void OutputDigests::extend(GrowingFile& file, std::uint64_t offset, std::uint64_t bytes) {
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
  thread_local std::vector<std::byte> memory;
  memory.resize(sha256::kMaxLanes * (kAtOnce + kStagger));
  std::vector<HashLane> lanes;
  {
    const std::lock_guard lock(mutex_);
    for (GrowingFile* file : files) {
      const std::uint64_t goal = std::min(file->written_, file->hashed_ + kTurn);
      while (!file->kept_.empty() && file->kept_.begin()->first < goal)
        file->next_.push_back(std::move(file->kept_.extract(file->kept_.begin()).mapped()));
      lanes.emplace_back(*file, goal,
                         std::span(memory).subspan(lanes.size() * (kAtOnce + kStagger), kAtOnce));
    }
  }
  hash_together(lanes);
  const std::lock_guard lock(mutex_);
  for (HashLane& lane : lanes) {
    for (GrowingFile::Kept& kept : lane.dropped) give_back(std::move(kept));
  }
  for (GrowingFile* file : files) {
    if (file->hashed_ - file->sent_ < kToDisk) continue;
    flush_.add(file->readable_, file->sent_, file->hashed_ - file->sent_);
    file->sent_ = file->hashed_;
  }
}

}  // namespace assay
