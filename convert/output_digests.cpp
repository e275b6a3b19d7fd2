#include "convert/output_digests.h"

#include <fcntl.h>

#include <algorithm>

namespace assay {
namespace {

constexpr std::uint64_t kLeast = 256 << 10;  // that a file must have ready to be taken up before it is whole
constexpr std::uint64_t kTurn = 1 << 20;     // of each file, before others are looked at
constexpr std::uint64_t kAtOnce = 64 << 10;  // read and hashed: a few of these fit a second-level cache
constexpr std::uint64_t kMuch = 8 << 20;     // ready in one file
constexpr std::uint64_t kToDisk = 32 << 20;  // hashed, and so complete: the disk may have it
constexpr std::uint64_t kKept = 16 << 20;    // of writers' memory, of all files
constexpr std::uint64_t kWorthKeeping = 4 << 10;

std::size_t lanes() {
  return static_cast<std::size_t>(std::min(4, sha256::KernelPlan::measured().lanes()));
}

// As many as a kernel takes in one call, and so in about the time of one.
std::size_t lanes_of_one_call() {
  std::size_t count = lanes();
  while (count > 1 && sha256::KernelPlan::measured().kernels_for(static_cast<int>(count)).size() > 1) --count;
  return count;
}

}  // namespace

// One of the files that are hashed side by side, as far as `goal`.
class HashLane {
 public:
  HashLane(GrowingFile& file, std::uint64_t goal, std::span<std::byte> buffer)
      : file_(file), goal_(goal), buffer_(buffer) {}

  sha256::Message& message() { return file_.message_; }
  // Fetches what comes next. False: nothing up to the goal is left, but for what is less than a block.
  bool prepare() {
    if (message().blocks() == 0 && message().length() < goal_) message().accept(next());
    if (message().blocks() > 0) return true;
    if (message().length() == file_.bytes_ && !file_.done_) {
      file_.digest_ = {DigestKind::sha256, message().digest()};
      file_.done_ = true;
      while (!file_.next_.empty()) drop_first();
    }
    return false;
  }
  std::vector<GrowingFile::Kept> dropped;  // hashed

 private:
  // Whole blocks that lie together in memory or are read at once, and the last bytes of the file.
  std::span<const std::byte> next() {
    const std::uint64_t at = message().length();
    while (!file_.next_.empty() && file_.next_.front().end < at + sha256::kBlock) drop_first();
    std::uint64_t until = std::min(goal_, at + kAtOnce);
    GrowingFile::Kept* const kept = file_.next_.empty() ? nullptr : &file_.next_.front();
    const bool in_memory = kept != nullptr && kept->begin <= at;
    // Where a gap's last block reaches into what was kept, it is read as well.
    if (kept != nullptr) until = std::min(until, in_memory ? kept->end : kept->begin + sha256::kBlock - 1);
    std::uint64_t size = until - at;
    if (until < file_.bytes_) size -= size % sha256::kBlock;
    if (in_memory) return kept->memory.take(kept->end - kept->begin).subspan(at - kept->begin, size);
    file_.readable_->read_exactly(file_.begin_ + at, buffer_.first(size));
    return buffer_.first(size);
  }
  void drop_first() {
    dropped.push_back(std::move(file_.next_.front()));
    file_.next_.pop_front();
  }

  GrowingFile& file_;
  std::uint64_t goal_;
  std::span<std::byte> buffer_;
};

namespace {

// All to their goals.
void hash_together(std::vector<HashLane>& lanes) {
  std::vector<sha256::Message*> ready;
  do {
    ready.clear();
    for (HashLane& lane : lanes) {
      if (lane.prepare()) ready.push_back(&lane.message());
    }
    if (!ready.empty()) sha256::advance_together(sha256::KernelPlan::measured(), ready);
  } while (!ready.empty());
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
    std::uint64_t& end = file.islands_[offset];
    end = std::max(end, offset + bytes);
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
  // One that is far behind, a GGUF beside its tensors, is not to wait for others.
  const bool behind = !chosen.empty() && chosen.front()->ready() >= kMuch;
  const std::size_t most = behind ? lanes_of_one_call() : lanes();
  if (chosen.size() > most) chosen.resize(most);
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
  constexpr std::size_t kApart = kAtOnce + sha256::kStagger;
  memory.resize(sha256::kMaxLanes * kApart);
  std::vector<HashLane> lanes;
  {
    const std::lock_guard lock(mutex_);
    for (GrowingFile* file : files) {
      const std::uint64_t goal = std::min(file->written_, file->hashed() + kTurn);
      while (!file->kept_.empty() && file->kept_.begin()->first < goal)
        file->next_.push_back(std::move(file->kept_.extract(file->kept_.begin()).mapped()));
      lanes.emplace_back(*file, goal, std::span(memory).subspan(lanes.size() * kApart, kAtOnce));
    }
  }
  hash_together(lanes);
  const std::lock_guard lock(mutex_);
  for (HashLane& lane : lanes) {
    for (GrowingFile::Kept& kept : lane.dropped) give_back(std::move(kept));
  }
  for (GrowingFile* file : files) {
    if (file->hashed() - file->sent_ < kToDisk) continue;
    flush_.add(file->readable_, file->begin_ + file->sent_, file->hashed() - file->sent_);
    file->sent_ = file->hashed();
  }
}

}  // namespace assay
