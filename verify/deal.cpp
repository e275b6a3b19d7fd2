#include "verify/deal.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <queue>

#include "verify/code_files.h"
#include "verify/expected/weight_files.h"
#include "verify/remote_code.h"

namespace assay {
namespace {

constexpr std::uint64_t kSmall = 16ull << 20;
constexpr std::uint64_t kSharesOfACut = 16;  // a file of less than so many parts of a share stays whole

struct Load {  // whole files that are the same bytes (a hub cache's snapshots): read once
  std::vector<std::uint32_t> files;
  std::uint64_t bytes = 0;
};

struct Deck {
  std::vector<Load> whole;         // to be dealt by size
  std::vector<std::uint32_t> cut;  // to be dealt by chunks
  std::vector<std::uint32_t> of_rank_0;
  std::vector<std::uint64_t> sizes;
};

bool looked_at_together(const std::string& name) {
  return may_name_code(name) || is_shard_index_name(name) ||
         (!may_hold_weights(name) && code_by_name(name, true).has_value());
}

std::uint64_t size_of(const Expectation& expectation, const ExpectedFile& file) {
  if (file.size) return *file.size;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(expectation.path_of(file), error);
  return error ? 0 : size;
}

bool can_be_cut(const Expectation& expectation, const ExpectedFile& file) {
  const std::uint64_t chunk = expectation.chunk_bytes;
  const std::size_t listed = (*file.chunks).size();
  return chunk > 0 && file.digest && file.size && !file.elsewhere && listed > 1 &&
         *file.size / chunk + (*file.size % chunk != 0) == listed;
}

Deck sort_out(const Expectation& expectation, std::uint32_t ranks,
              const std::function<bool(const std::string&)>& accepted) {
  Deck deck;
  const auto count = static_cast<std::uint32_t>(expectation.files.size());
  deck.sizes.resize(count);
  std::uint64_t total = 0, small = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const ExpectedFile& file = expectation.files[i];
    if (!accepted(file.name)) continue;
    deck.sizes[i] = size_of(expectation, file);
    total += deck.sizes[i];
    if (!may_hold_weights(file.name) && deck.sizes[i] <= kSmall) small += deck.sizes[i];
  }
  const std::uint64_t fair = total / ranks;
  std::map<fs::path, std::size_t> seen;
  for (std::uint32_t i = 0; i < count; ++i) {
    const ExpectedFile& file = expectation.files[i];
    if (!accepted(file.name)) continue;
    const bool light = small <= fair && deck.sizes[i] <= kSmall && !may_hold_weights(file.name);
    if (light || looked_at_together(file.name)) {
      deck.of_rank_0.push_back(i);
    } else if (can_be_cut(expectation, file) && deck.sizes[i] > fair / kSharesOfACut) {
      deck.cut.push_back(i);
    } else if (!file.elsewhere) {
      deck.whole.push_back({{i}, deck.sizes[i]});
    } else {
      const auto [it, fresh] = seen.try_emplace(*file.elsewhere, deck.whole.size());
      if (fresh) deck.whole.push_back({{}, deck.sizes[i]});
      deck.whole[it->second].files.push_back(i);
    }
  }
  return deck;
}

// Up to where ranks that hold `loads` are filled with `bytes` more, the emptiest first.
std::uint64_t water_level(std::vector<std::uint64_t> loads, std::uint64_t bytes) {
  std::sort(loads.begin(), loads.end());
  std::uint64_t below = 0;
  for (std::size_t n = 1; n <= loads.size(); ++n) {
    below += loads[n - 1];
    const std::uint64_t level = (below + bytes + n - 1) / n;
    if (n == loads.size() || level <= loads[n]) return level;
  }
  return 0;
}

class Dealing {
 public:
  Dealing(const Expectation& expectation, const NodeShare& share, Deck deck)
      : expectation_(expectation), share_(share), deck_(std::move(deck)), loads_(share.ranks, 0) {
    dealt_.mine.assign(expectation.files.size(), false);
  }

  Dealt run() {
    for (const std::uint32_t i : deck_.of_rank_0) give(0, i);
    deal_whole();
    deal_cut();
    dealt_.total = std::accumulate(loads_.begin(), loads_.end(), std::uint64_t{0});
    dealt_.bytes = loads_[share_.rank];
    const std::uint64_t fair = dealt_.total / share_.ranks;
    if (dealt_.uncut_bytes <= fair + fair / 10) dealt_.uncut.clear();
    return std::move(dealt_);
  }

 private:
  void give(std::uint32_t rank, std::uint32_t file) {
    loads_[rank] += deck_.sizes[file];
    if (rank == share_.rank) dealt_.mine[file] = true;
  }

  void deal_whole() {
    std::stable_sort(deck_.whole.begin(), deck_.whole.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    using Hand = std::pair<std::uint64_t, std::uint32_t>;  // what it holds, the rank
    std::priority_queue<Hand, std::vector<Hand>, std::greater<>> hands;
    for (std::uint32_t rank = 0; rank < share_.ranks; ++rank) hands.emplace(loads_[rank], rank);
    for (const Load& load : deck_.whole) {
      const std::uint32_t rank = hands.top().second;
      hands.pop();
      loads_[rank] += load.bytes;
      if (rank == share_.rank)
        for (const std::uint32_t i : load.files) dealt_.mine[i] = true;
      hands.emplace(loads_[rank], rank);
      if (load.bytes > dealt_.uncut_bytes) {
        dealt_.uncut_bytes = load.bytes;
        dealt_.uncut = expectation_.files[load.files[0]].name;
      }
    }
  }

  // The cut files stand one behind the other; each rank gets the run of them that fills it up, to whole chunks.
  void deal_cut() {
    std::uint64_t all = 0;
    for (const std::uint32_t i : deck_.cut) all += deck_.sizes[i];
    if (all == 0) return;
    const std::vector<std::uint64_t> before = loads_;
    const std::uint64_t level = water_level(before, all);
    std::uint32_t rank = 0;
    std::uint64_t filled_to = room(before, level, 0), position = 0;
    for (const std::uint32_t i : deck_.cut) {
      for (const ByteRange& chunk : chunks_of({0, deck_.sizes[i]}, expectation_.chunk_bytes)) {
        const std::uint64_t bytes = chunk.end - chunk.begin;
        while (position + bytes / 2 >= filled_to && rank + 1 < share_.ranks)
          filled_to += room(before, level, ++rank);
        position += bytes;
        loads_[rank] += bytes;
        if (rank == share_.rank) take(i, chunk);
      }
    }
  }

  static std::uint64_t room(const std::vector<std::uint64_t>& loads, std::uint64_t level,
                            std::uint32_t rank) {
    return level > loads[rank] ? level - loads[rank] : 0;
  }

  void take(std::uint32_t file, const ByteRange& chunk) {
    dealt_.mine[file] = true;
    std::vector<ByteRange>& parts = dealt_.parts[expectation_.files[file].name];
    if (!parts.empty() && parts.back().end == chunk.begin)
      parts.back().end = chunk.end;
    else
      parts.push_back(chunk);
  }

  const Expectation& expectation_;
  const NodeShare share_;
  Deck deck_;
  std::vector<std::uint64_t> loads_;  // of each rank
  Dealt dealt_;
};

}  // namespace

std::vector<ByteRange> chunks_of(const ByteRange& span, std::uint64_t chunk_bytes) {
  std::vector<ByteRange> chunks;
  for (std::uint64_t at = span.begin; at < span.end; at += chunks.back().end - at)
    chunks.push_back({at, std::min(span.end, (at / chunk_bytes + 1) * chunk_bytes)});
  return chunks;
}

Dealt deal_out(const Expectation& expectation, const NodeShare& share,
               const std::function<bool(const std::string&)>& accepted) {
  return Dealing(expectation, share, sort_out(expectation, share.ranks, accepted)).run();
}

void ListDigest::add(std::string_view name, const Digest& expected, KnownSize size) {
  const std::string line = fmt::format("{}\n{} {} {}\n", name, expected.kind_name(), expected.hex(),
                                       size ? fmt::to_string(*size) : "-");
  digest_.update(std::as_bytes(std::span(line)));
}

std::string ListDigest::hex() {
  return "sha256:" + digest_.finish().hex();
}

}  // namespace assay
