#include "core/formats/xet/xet_hash.h"

#include <algorithm>
#include <iterator>

#include "core/formats/blake3_many.h"

namespace assay {
namespace {

using xet::Hash;

constexpr std::size_t kShortest = 8 << 10, kLongest = 128 << 10;
// The chunker reads on from so many bytes before the shortest length, with an empty hash: the older dialect may
// cut where that hash has not seen 64 bytes yet.
constexpr std::size_t kSkipped = kShortest - xet::kGearWindow - 1;
constexpr std::size_t kAtOnce = 512 << 10;  // bytes searched at once: they stay in the second-level cache
constexpr std::size_t kRooms = 8;  // of so many bytes, where others hash what has been searched meanwhile

// xet_core_structures/src/merklehash/data_hash.rs
constexpr Blake3Key kChunkKey = {102, 151, 245, 119, 91,  149, 80,  222, 49,  53,  203,
                                 172, 165, 151, 24,  28,  157, 228, 33,  16,  155, 235,
                                 43,  88,  180, 208, 176, 75,  147, 173, 242, 41};

Digest digest_of_hash(const Hash& hash) {
  return {DigestKind::xet, xet::in_order_of_text(hash)};
}

}  // namespace

XetHasher::XetHasher(int jobs)
    : most_(jobs > 1 ? kRooms * kAtOnce : kAtOnce), errands_(std::max(1, jobs) - 1) {}

std::span<std::byte> XetHasher::room() {
  if (!bytes_) bytes_ = std::make_unique_for_overwrite<std::byte[]>(most_);
  return {&bytes_[filled_], std::min(most_, marked_ + kAtOnce) - filled_};
}

void XetHasher::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto place = room();
    const auto taken = bytes.first(std::min(bytes.size(), place.size()));
    if (taken.data() != place.data()) std::copy(taken.begin(), taken.end(), place.begin());
    filled_ += taken.size();
    bytes = bytes.subspan(taken.size());
    if (taken.size() == place.size()) work(false);
  }
}

XetDigests XetHasher::finish() {
  work(true);
  settle();
  return {digest_of_hash(current_.tree.finish()), digest_of_hash(older_.tree.finish())};
}

void XetHasher::work(bool last) {
  if (filled_ == 0) return;
  mark();
  cut(current_, last);
  cut(older_, last);
  hash_cuts();
  if (filled_ == most_) {
    settle();
    drop_done();
  }
}

void XetHasher::mark() {
  marks_.resize((filled_ - marked_ + 63) / 64);
  rolled_ = xet::mark_cuts(rolled_, part(marked_, filled_), marks_.data());
  ends_.add(marked_, marks_);
  marked_ = filled_;
}

void XetHasher::cut(Dialect& dialect, bool last) const {
  while (const auto end = end_of(dialect, last)) {
    dialect.cut.push_back({dialect.begin, *end});
    dialect.begin = *end;
  }
}

// nullopt: more has to be read first; or there is nothing left.
std::optional<std::size_t> XetHasher::end_of(const Dialect& dialect, bool last) const {
  const std::size_t begin = dialect.begin, to = std::min(marked_, begin + kLongest);
  if (dialect.older && to > begin + kSkipped) {
    const auto unsettled = part(begin + kSkipped, std::min(to, begin + kSkipped + xet::kGearWindow - 1));
    if (const auto early = xet::first_cut(0, unsettled)) return begin + kSkipped + *early;
  }
  const std::size_t shortest = dialect.older ? kSkipped + xet::kGearWindow : kShortest;
  if (const auto end = ends_.first_in(begin + shortest, to)) return end;
  if (to == begin + kLongest || (last && to > begin)) return to;
  return std::nullopt;
}

// The dialects mostly cut alike, and what both have cut is hashed once.
void XetHasher::hash_cuts() {
  Cuts& cuts = open_.emplace_back(Cuts{.current = std::move(current_.cut), .older = std::move(older_.cut)});
  current_.cut.clear();
  older_.cut.clear();
  std::set_union(cuts.current.begin(), cuts.current.end(), cuts.older.begin(), cuts.older.end(),
                 std::back_inserter(cuts.both));
  for (const Chunk& chunk : cuts.both) cuts.messages.push_back(part(chunk.begin, chunk.end));
  cuts.hashes.resize(cuts.both.size());
  errands_.add([&cuts] { blake3_many(kChunkKey, cuts.messages, cuts.hashes); });
}

void XetHasher::settle() {
  errands_.finish();
  const auto add = [](Dialect& dialect, const std::vector<Chunk>& chunks, const Cuts& cuts) {
    auto at = cuts.both.begin();
    for (const Chunk& chunk : chunks) {
      at = std::lower_bound(at, cuts.both.end(), chunk);
      dialect.tree.add(cuts.hashes[static_cast<std::size_t>(at - cuts.both.begin())],
                       chunk.end - chunk.begin);
    }
  };
  for (const Cuts& cuts : open_) {
    add(current_, cuts.current, cuts);
    add(older_, cuts.older, cuts);
  }
  open_.clear();
}

// What is left moves to the front.
void XetHasher::drop_done() {
  const std::size_t done = std::min(current_.begin, older_.begin);
  std::copy(&bytes_[done], &bytes_[filled_], &bytes_[0]);
  ends_.shift(done);
  filled_ -= done;
  marked_ -= done;
  current_.begin -= done;
  older_.begin -= done;
}

}  // namespace assay
