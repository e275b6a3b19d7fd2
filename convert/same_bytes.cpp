#include "convert/same_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <numeric>

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
bool reaches(std::span<const std::byte> codes, std::uint8_t limit) {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t found = 0, word = 0;
  for (std::size_t i = 0; i < codes.size(); i += sizeof word) {
    word = 0;
    std::memcpy(&word, &codes[i], std::min(sizeof word, codes.size() - i));
    found |= (word & 0x7F * kEach) + (0x80U - limit) * kEach;
  }
  return (found & 0x80 * kEach) != 0;
}

// Of what was found to differ.
Digest digest_of(const StoredTwice& pair, const ReadBytes& read) {
  StreamDigest digest(DigestKind::sha256, pair.bytes);
  std::vector<std::byte> buffer(std::min(pair.bytes, kPairBytes));
  for (std::uint64_t at = 0; at < pair.bytes; at += buffer.size()) {
    const auto piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), pair.bytes - at));
    read(at, piece);
    digest.update(piece);
  }
  return digest.finish();
}

// A pair on its way, one of those that a thread has at hand.
class PairLane {
 public:
  PairLane(const StoredTwice& pair, ReadTwice& result, std::byte* memory)
      : pair_(pair), result_(result), memory_(memory, kPairBytes) {}

  std::byte* memory() const { return memory_.data(); }
  sha256::Message& message() { return message_; }
  // Fetches what comes next, by way of `other`. False: the pair has been read, and its result is there.
  bool prepare(std::span<std::byte> other, Progress& progress) {
    if (message_.blocks() == 0 && message_.length() < pair_.bytes) fetch(other, progress);
    if (message_.blocks() > 0) return true;
    result_.before = {DigestKind::sha256, message_.digest()};
    result_.after = same_ ? result_.before : digest_of(pair_, pair_.after);
    return false;
  }

 private:
  void fetch(std::span<std::byte> other, Progress& progress) {
    const std::uint64_t at = message_.length(), size = std::min(kPairBytes, pair_.bytes - at);
    const auto before = memory_.first(size), after = other.first(size);
    pair_.before(at, before);
    if (same_) {
      pair_.after(at, after);
      same_ = std::memcmp(before.data(), after.data(), size) == 0;
    }
    if (pair_.first_non_finite < 0x80 && result_.finite)
      result_.finite = !reaches(before, pair_.first_non_finite);
    message_.accept(before);
    progress.add(2 * size);
  }

  const StoredTwice& pair_;
  ReadTwice& result_;
  std::span<std::byte> memory_;
  sha256::Message message_;
  bool same_ = true;
};

// Takes pairs, by `order`, until none is left.
class PairReader {
 public:
  PairReader(std::span<const StoredTwice> pairs, std::span<const std::size_t> order,
             std::vector<ReadTwice>& results, std::atomic<std::size_t>& next, Progress& progress)
      : pairs_(pairs), order_(order), results_(results), next_(next), progress_(progress) {
    const std::size_t most =
        std::min(kPairsAtOnce, static_cast<std::size_t>(sha256::KernelPlan::measured().lanes()));
    memory_.resize((most + 1) * kPairsApart);
    for (std::size_t i = 0; i < most; ++i) free_.push_back(memory_.data() + i * kPairsApart);
  }

  void run() {
    const auto other = std::span(memory_).last(kPairsApart);
    std::vector<sha256::Message*> ready;
    while (take_up()) {
      if (interrupted()) throw Interrupted{};
      ready.clear();
      lanes_.remove_if([&](PairLane& lane) {
        if (lane.prepare(other, progress_)) return false;
        free_.push_back(lane.memory());
        return true;
      });
      for (PairLane& lane : lanes_) ready.push_back(&lane.message());
      if (!ready.empty()) sha256::advance_together(sha256::KernelPlan::measured(), ready);
    }
  }

 private:
  // As many as there is memory for. False: all are done.
  bool take_up() {
    while (!free_.empty()) {
      const std::size_t i = next_.fetch_add(1);
      if (i >= order_.size()) break;
      lanes_.emplace_back(pairs_[order_[i]], results_[order_[i]], free_.back());
      free_.pop_back();
    }
    return !lanes_.empty();
  }

  std::span<const StoredTwice> pairs_;
  std::span<const std::size_t> order_;
  std::vector<ReadTwice>& results_;
  std::atomic<std::size_t>& next_;
  Progress& progress_;
  std::vector<std::byte> memory_;
  std::vector<std::byte*> free_;
  std::list<PairLane> lanes_;
};

}  // namespace

std::vector<ReadTwice> read_twice(std::span<const StoredTwice> pairs, int jobs, Progress& progress) {
  std::vector<ReadTwice> results(pairs.size());
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // The large ones first: those that are read side by side end together, and no thread is left with one.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return pairs[a].bytes > pairs[b].bytes; });
  std::atomic<std::size_t> next = 0;
  parallel_for(jobs, static_cast<std::size_t>(jobs),
               [&](std::size_t) { PairReader(pairs, order, results, next, progress).run(); });
  return results;
}

}  // namespace assay
