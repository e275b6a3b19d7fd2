#include "convert/same_bytes.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <numeric>
#include <optional>

#include "convert/pipeline.h"
#include "core/formats/hash/message.h"
#include "core/formats/stream_digest.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::uint64_t kPairBytes = 64 << 10;  // of each tensor: some of them fit a second-level cache
constexpr std::uint64_t kPairsApart = kPairBytes + sha256::kStagger;
constexpr std::size_t kPairsAtOnce = 4;

// Whether a code is `limit` or more, beside its sign: eight at a time, for to each can be added what is missing to the sign.
class Reaching {
 public:
  explicit Reaching(std::uint8_t limit) : missing_((0x80U - limit) * kEach) {}

  bool any(std::span<const std::byte> codes) const {
    std::uint64_t found = 0;
    std::size_t at = 0;
    for (; at + 4 * kWord <= codes.size(); at += 4 * kWord) {
      const std::byte* const four = codes.data() + at;
      found |= (of(four) | of(four + kWord)) | (of(four + 2 * kWord) | of(four + 3 * kWord));
    }
    for (; at < codes.size(); at += kWord) found |= of_few(codes.subspan(at));
    return (found & 0x80 * kEach) != 0;
  }

 private:
  static constexpr std::size_t kWord = sizeof(std::uint64_t);
  static constexpr std::uint64_t kEach = 0x0101010101010101;

  std::uint64_t of(const std::byte* codes) const {
    std::uint64_t word;
    std::memcpy(&word, codes, kWord);
    return (word & 0x7F * kEach) + missing_;
  }
  std::uint64_t of_few(std::span<const std::byte> codes) const {
    std::byte word[kWord] = {};
    std::memcpy(word, codes.data(), std::min(kWord, codes.size()));
    return of(word);
  }

  std::uint64_t missing_;
};

}  // namespace

// Pairs to be read, first come, first served.
class PairQueue {
 public:
  struct Entry {
    StoredTwice pair;
    ReadTwice* result;
  };

  void add(StoredTwice pair, ReadTwice& result) {
    const std::lock_guard lock(mutex_);
    entries_.push_back({std::move(pair), &result});
    something_new_.notify_one();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    something_new_.notify_all();
  }
  void abandon() {
    {
      const std::lock_guard lock(mutex_);
      abandoned_ = true;
      entries_.clear();
    }
    close();
  }
  bool abandoned() const {
    const std::lock_guard lock(mutex_);
    return abandoned_;
  }
  // `wait`: for one that is yet to be added. nullopt: there is none.
  std::optional<Entry> take(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) something_new_.wait(lock, [&] { return closed_ || !entries_.empty(); });
    if (entries_.empty()) return std::nullopt;
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    return entry;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable something_new_;
  std::deque<Entry> entries_;
  bool closed_ = false, abandoned_ = false;
};

namespace {

// What a thread needs for each of the pairs that it has at hand.
struct PairRoom {
  PairRoom(ReadPool& pool, std::byte* where) : memory(where, kPairBytes), stream(pool) {}
  std::span<std::byte> memory;
  DiskStream stream;
};

// A pair on its way, one of those that a thread has at hand.
class PairLane {
 public:
  PairLane(PairQueue::Entry entry, PairRoom& room)
      : pair_(std::move(entry.pair)), result_(*entry.result), room_(room) {
    begin_after();
  }

  PairLane(const PairLane&) = delete;
  PairLane& operator=(const PairLane&) = delete;
  ~PairLane() { room_.stream.close(); }  // before the file

  PairRoom& room() const { return room_; }
  sha256::Message& message() { return message_; }
  // Fetches what comes next, by way of `other`. False: the pair has been read, and its result is there.
  bool prepare(std::span<std::byte> other, Progress& progress) {
    if (message_.blocks() == 0 && message_.length() < pair_.bytes) fetch(other, progress);
    if (message_.blocks() > 0) return true;
    result_.before = {DigestKind::sha256, message_.digest()};
    result_.after = same_ ? result_.before : digest_of_after(other);
    room_.stream.close();
    disk_.reset();
    return false;
  }

 private:
  void begin_after() {
    if (pair_.disk == nullptr) return;
    if (disk_ == nullptr) disk_ = pair_.disk();
    room_.stream.open(*disk_, pair_.disk_offset, pair_.bytes);
  }
  void read_after(std::uint64_t at, std::span<std::byte> out) {
    if (pair_.disk != nullptr)
      room_.stream.read(out);
    else
      pair_.after(at, out);
  }

  void fetch(std::span<std::byte> other, Progress& progress) {
    const std::uint64_t at = message_.length(), size = std::min(kPairBytes, pair_.bytes - at);
    const auto before = room_.memory.first(size), after = other.first(size);
    pair_.before(at, before);
    if (same_) {
      read_after(at, after);
      same_ = std::memcmp(before.data(), after.data(), size) == 0;
    }
    if (pair_.first_non_finite < 0x80 && result_.finite)
      result_.finite = !Reaching(pair_.first_non_finite).any(before);
    message_.accept(before);
    progress.add(2 * size);
  }

  // Of what was found to differ, all of it once more.
  Digest digest_of_after(std::span<std::byte> buffer) {
    begin_after();
    StreamDigest digest(DigestKind::sha256, pair_.bytes);
    for (std::uint64_t at = 0; at < pair_.bytes; at += kPairBytes) {
      const auto piece = buffer.first(std::min(kPairBytes, pair_.bytes - at));
      read_after(at, piece);
      digest.update(piece);
    }
    return digest.finish();
  }

  const StoredTwice pair_;
  ReadTwice& result_;
  PairRoom& room_;
  std::shared_ptr<const DiskFile> disk_;
  sha256::Message message_;
  bool same_ = true;
};

// Takes pairs from a queue until no more will come.
class PairReader {
 public:
  PairReader(PairQueue& queue, ReadPool& pool, Progress& progress) : queue_(queue), progress_(progress) {
    const std::size_t most =
        std::min(kPairsAtOnce, static_cast<std::size_t>(sha256::KernelPlan::measured().lanes()));
    memory_.resize((most + 1) * kPairsApart);
    for (std::size_t i = 0; i < most; ++i) rooms_.emplace_back(pool, memory_.data() + i * kPairsApart);
    for (PairRoom& room : rooms_) free_.push_back(&room);
  }

  void run() {
    const auto other = std::span(memory_).last(kPairsApart).first(kPairBytes);
    std::vector<sha256::Message*> ready;
    while (take_up() && !queue_.abandoned()) {
      if (interrupted()) throw Interrupted{};
      ready.clear();
      lanes_.remove_if([&](PairLane& lane) {
        if (lane.prepare(other, progress_)) return false;
        free_.push_back(&lane.room());
        return true;
      });
      for (PairLane& lane : lanes_) ready.push_back(&lane.message());
      if (!ready.empty()) sha256::advance_together(sha256::KernelPlan::measured(), ready);
    }
  }

 private:
  // As many as there is room for. False: all are done.
  bool take_up() {
    while (!free_.empty()) {
      auto entry = queue_.take(lanes_.empty());
      if (!entry) break;
      lanes_.emplace_back(std::move(*entry), *free_.back());
      free_.pop_back();
    }
    return !lanes_.empty();
  }

  PairQueue& queue_;
  Progress& progress_;
  std::vector<std::byte> memory_;
  std::list<PairRoom> rooms_;
  std::vector<PairRoom*> free_;
  std::list<PairLane> lanes_;
};

// Threads that only wait for the disk.
int waiting_threads(int jobs) {
  return std::clamp(2 * jobs, 8, 64);
}

}  // namespace

std::vector<ReadTwice> read_twice(std::span<const StoredTwice> pairs, int jobs, Progress& progress) {
  std::vector<ReadTwice> results(pairs.size());
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // The large ones first: those that are read side by side end together, and no thread is left with one.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return pairs[a].bytes > pairs[b].bytes; });
  PairQueue queue;
  for (const std::size_t i : order) queue.add(pairs[i], results[i]);
  queue.close();
  ReadPool pool(waiting_threads(jobs));
  parallel_for(jobs, static_cast<std::size_t>(jobs),
               [&](std::size_t) { PairReader(queue, pool, progress).run(); });
  return results;
}

ReadingTwice::ReadingTwice(int jobs)
    : queue_(std::make_unique<PairQueue>()),
      pool_(waiting_threads(jobs)),
      unseen_(ProgressMode::never, "", 0) {
  for (int i = 0; i < jobs; ++i) {
    readers_.push_back(std::async(std::launch::async, [this] { PairReader(*queue_, pool_, unseen_).run(); }));
  }
}

ReadingTwice::~ReadingTwice() {
  queue_->abandon();
}

void ReadingTwice::add(StoredTwice pair, ReadTwice& result) {
  queue_->add(std::move(pair), result);
}

void ReadingTwice::finish() {
  queue_->close();
  for (std::future<void>& reader : readers_) reader.get();
}

}  // namespace assay
