// A set of byte strings with a value each, asked which of them begin at a place of a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

class ByteTrie {
 public:
  using Entry = std::pair<std::string_view, std::uint32_t>;

  ByteTrie() = default;
  // Empty strings are left out; of equal strings the first counts.
  explicit ByteTrie(std::vector<Entry> entries);

  // Calls visit(length, value) for each entry that is a prefix of `text`, shortest first.
  template <class Visit>
  void for_each_prefix(std::string_view text, Visit visit) const {
    if (nodes_.empty()) return;
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      at = child(at, static_cast<std::uint8_t>(text[i]));
      if (at == 0) return;
      if (nodes_[at].value != kNone) visit(i + 1, nodes_[at].value);
    }
  }

  struct Match {
    std::size_t length = 0;
    std::uint32_t value = 0;
  };
  std::optional<Match> longest_prefix(std::string_view text) const {
    std::optional<Match> longest;
    for_each_prefix(text, [&](std::size_t length, std::uint32_t value) { longest = Match{length, value}; });
    return longest;
  }

  bool empty() const { return nodes_.empty(); }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  struct Node {
    std::uint32_t first_child = 0;
    std::uint32_t value = kNone;
    std::uint16_t children = 0;
    std::uint8_t byte = 0;
  };

  // 0, the root, where there is none.
  std::uint32_t child(std::uint32_t node, std::uint8_t byte) const {
    if (node == 0) return roots_[byte];
    const Node& parent = nodes_[node];
    const auto first = nodes_.begin() + parent.first_child;
    const auto last = first + parent.children;
    const auto it =
        std::lower_bound(first, last, byte, [](const Node& n, std::uint8_t b) { return n.byte < b; });
    return it != last && it->byte == byte ? static_cast<std::uint32_t>(it - nodes_.begin()) : 0;
  }

  std::vector<Node> nodes_;           // [0] is the root; a node's children lie together, by byte
  std::vector<std::uint32_t> roots_;  // the root's children, by byte
};

}  // namespace assay
