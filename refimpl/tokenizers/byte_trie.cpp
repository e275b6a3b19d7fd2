#include "refimpl/tokenizers/byte_trie.h"

#include <numeric>

namespace assay {

// Finds units for nodes. Those with several children are placed at a cursor that never goes back, so that all searches
// together pass over every unit once; only children go into the holes that this leaves.
class ByteTrie::Builder {
 public:
  explicit Builder(std::vector<Unit>& units) : units_(units) {
    open_block();
    take(0, kNone);
  }

  // Gives `node` children by these bytes.
  void place_children(std::uint32_t node, const std::vector<std::uint8_t>& bytes) {
    const bool single = bytes.size() == 1;
    std::size_t at = free_from(single ? 0 : cursor_);
    while (at < units_.size() && !fits(at ^ bytes[0], bytes)) at = free_from(at + 1);
    if (at == units_.size()) open_block();
    const auto base = static_cast<std::uint32_t>(at ^ bytes[0]);
    for (const std::uint8_t byte : bytes) take(base ^ byte, node);
    units_[node].base = base;
    if (!single) cursor_ = at;
  }

 private:
  void open_block() {
    units_.resize(units_.size() + 256);
    const std::size_t before = next_.size();
    next_.resize(units_.size() + 1);
    std::iota(next_.begin() + static_cast<std::ptrdiff_t>(before), next_.end(), before);
  }
  void take(std::size_t unit, std::uint32_t parent) {
    units_[unit].parent = parent;
    next_[unit] = unit + 1;
  }
  bool fits(std::size_t base, const std::vector<std::uint8_t>& bytes) const {
    return std::all_of(bytes.begin(), bytes.end(), [&](std::uint8_t byte) {
      const std::size_t unit = base ^ byte;
      return next_[unit] == unit;
    });
  }
  // The first free unit from `at` on, or the number of units.
  std::size_t free_from(std::size_t at) {
    while (next_[at] != at) at = next_[at] = next_[next_[at]];
    return at;
  }

  std::vector<Unit>& units_;
  std::vector<std::size_t> next_;  // of a free unit itself, else one nearer to the next free one
  std::size_t cursor_ = 0;
};

// Breadth first over the sorted entries: a node is a range of entries that share `depth` bytes.
ByteTrie::ByteTrie(std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.first.empty(); });
  if (entries.empty()) return;
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.first < b.first; });
  struct Range {
    std::size_t begin, end, depth;
    std::uint32_t unit;
  };
  Builder builder(units_);
  std::vector<Range> level = {{0, entries.size(), 0, 0}}, below;
  std::vector<std::uint8_t> bytes;
  for (; !level.empty(); std::swap(level, below), below.clear()) {
    for (auto [begin, end, depth, unit] : level) {
      // Entries that end here come first.
      if (entries[begin].first.size() == depth) units_[unit].value = entries[begin].second;
      while (begin < end && entries[begin].first.size() == depth) ++begin;
      bytes.clear();
      const std::size_t first = below.size();
      for (std::size_t after = begin; begin < end; begin = after) {
        const char byte = entries[begin].first[depth];
        while (after < end && entries[after].first[depth] == byte) ++after;
        bytes.push_back(static_cast<std::uint8_t>(byte));
        below.push_back({begin, after, depth + 1, 0});
      }
      if (bytes.empty()) continue;
      builder.place_children(unit, bytes);
      for (std::size_t i = 0; i < bytes.size(); ++i) below[first + i].unit = units_[unit].base ^ bytes[i];
    }
  }
}

}  // namespace assay
