#include "refimpl/tokenizers/byte_trie.h"

namespace assay {

// Breadth first over the sorted entries: a node is a range of entries that share `depth` bytes.
ByteTrie::ByteTrie(std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.first.empty(); });
  if (entries.empty()) return;
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.first < b.first; });
  struct Range {
    std::size_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, entries.size(), 0}};
  nodes_.emplace_back();
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    // Entries that end here come first.
    if (entries[begin].first.size() == depth) nodes_[node].value = entries[begin].second;
    while (begin < end && entries[begin].first.size() == depth) ++begin;
    nodes_[node].first_child = static_cast<std::uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = entries[begin].first[depth];
      std::size_t after = begin;
      while (after < end && entries[after].first[depth] == byte) ++after;
      nodes_.push_back({0, kNone, 0, static_cast<std::uint8_t>(byte)});
      ranges.push_back({begin, after, depth + 1});
      ++nodes_[node].children;
      begin = after;
    }
  }
  roots_.assign(256, 0);
  for (std::uint32_t i = 0; i < nodes_[0].children; ++i) {
    const std::uint32_t at = nodes_[0].first_child + i;
    roots_[nodes_[at].byte] = at;
  }
}

}  // namespace assay
