#include "core/formats/xet/xet_hash.h"

#include <algorithm>
#include <iterator>

#include "core/formats/blake3_many.h"
#include "core/system/threads.h"

namespace assay {
namespace {

using xet::Hash;

constexpr std::size_t kShortest = 8 << 10, kLongest = 128 << 10;
// The chunker reads on from so many bytes before the shortest length, with an empty hash: the older dialect may
// cut where that hash has not seen 64 bytes yet.
constexpr std::size_t kSkipped = kShortest - xet::kGearWindow - 1;
constexpr std::size_t kRoom = 512 << 10;  // bytes worked on at once, for each of a few threads
constexpr std::size_t kMostRooms = 4;
constexpr std::size_t kGrain = 128 << 10;  // the least that is worth a thread

// xet_core_structures/src/merklehash/data_hash.rs
constexpr Blake3Key kChunkKey = {102, 151, 245, 119, 91,  149, 80,  222, 49,  53,  203,
                                 172, 165, 151, 24,  28,  157, 228, 33,  16,  155, 235,
                                 43,  88,  180, 208, 176, 75,  147, 173, 242, 41};

Digest digest_of_hash(const Hash& hash) {
  return {DigestKind::xet, xet::in_order_of_text(hash)};
}

}  // namespace

XetHasher::XetHasher(int jobs)
    : jobs_(jobs),
      room_(kRoom * std::clamp<std::size_t>(static_cast<std::size_t>(std::max(1, jobs)), 1, kMostRooms)) {}

void XetHasher::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), room_ - buffer_.size()));
    buffer_.insert(buffer_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (buffer_.size() == room_) work(false);
  }
}

XetDigests XetHasher::finish() {
  work(true);
  return {digest_of_hash(current_.tree.finish()), digest_of_hash(older_.tree.finish())};
}

void XetHasher::work(bool last) {
  if (buffer_.empty()) return;
  if (!marks_) marks_ = std::make_unique<xet::CutMarks>(buffer_.size());
  mark(last ? buffer_.size() : buffer_.size() / 64 * 64);
  cut(current_, last);
  cut(older_, last);
  hash_chunks();
  drop_done();
}

// Each thread a part of what is new; all but the first begin with the 64 bytes before their part.
void XetHasher::mark(std::size_t to) {
  const std::size_t bytes = to - marked_;
  const std::size_t parts =
      std::clamp<std::size_t>(bytes / kGrain, 1, static_cast<std::size_t>(std::max(1, jobs_)));
  const std::size_t each = bytes / parts / 64 * 64;
  std::vector<std::uint64_t> after(parts);
  const std::span<const std::byte> all(buffer_);
  parallel_for(jobs_, parts, [&](std::size_t i) {
    const std::size_t begin = marked_ + i * each, end = i + 1 == parts ? to : begin + each;
    const std::uint64_t before =
        i == 0 ? rolled_ : xet::roll(0, all.subspan(begin - xet::kGearWindow, xet::kGearWindow));
    after[i] = xet::mark_cuts(before, all.subspan(begin, end - begin), marks_->word_of(begin));
  });
  rolled_ = after.back();
  marked_ = to;
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
    const auto unsettled =
        std::span(buffer_).subspan(begin + kSkipped, std::min(to - begin - kSkipped, xet::kGearWindow - 1));
    if (const auto early = xet::first_cut(0, unsettled)) return begin + kSkipped + *early;
  }
  const std::size_t shortest = dialect.older ? kSkipped + xet::kGearWindow : kShortest;
  if (const auto end = marks_->first_end(begin + shortest, to)) return end;
  if (to == begin + kLongest || (last && to > begin)) return to;
  return std::nullopt;
}

// The dialects mostly cut alike, and what both have cut is hashed once.
void XetHasher::hash_chunks() {
  std::vector<Chunk> chunks;
  std::set_union(current_.cut.begin(), current_.cut.end(), older_.cut.begin(), older_.cut.end(),
                 std::back_inserter(chunks));
  std::vector<std::span<const std::byte>> messages;
  for (const Chunk& chunk : chunks)
    messages.push_back(std::span(buffer_).subspan(chunk.begin, chunk.end - chunk.begin));
  std::vector<Hash> hashes(chunks.size());
  const std::size_t parts = std::min(chunks.size(), static_cast<std::size_t>(std::max(1, jobs_)));
  parallel_for(jobs_, parts, [&](std::size_t i) {
    const std::size_t begin = chunks.size() * i / parts, end = chunks.size() * (i + 1) / parts;
    blake3_many(kChunkKey, std::span(messages).subspan(begin, end - begin),
                std::span(hashes).subspan(begin, end - begin));
  });
  for (Dialect* const dialect : {&current_, &older_}) {
    auto at = chunks.begin();
    for (const Chunk& chunk : dialect->cut) {
      at = std::lower_bound(at, chunks.end(), chunk);
      dialect->tree.add(hashes[static_cast<std::size_t>(at - chunks.begin())], chunk.end - chunk.begin);
    }
    dialect->cut.clear();
  }
}

// What is left moves to the front, by a multiple of 64 bytes: so do the marks, of which one word has as many.
void XetHasher::drop_done() {
  const std::size_t done = std::min(current_.begin, older_.begin) / 64 * 64;
  marks_->shift(done, marked_);
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(done));
  marked_ -= done;
  current_.begin -= done;
  older_.begin -= done;
}

}  // namespace assay
