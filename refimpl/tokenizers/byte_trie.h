// A set of byte strings with a value each, asked which of them begin at a place of a text.
//
// A double array (Aoe, IEEE Trans. Softw. Eng. 15, 1989), placed by XOR as darts-clone does: the child of node n by byte b
// is unit n.base ^ b, if that unit's parent is n. A step is one load.
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
    if (units_.empty()) return;
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::uint32_t child = units_[at].base ^ static_cast<std::uint8_t>(text[i]);
      if (units_[child].parent != at) return;
      at = child;
      if (units_[at].value != kNone) visit(i + 1, units_[at].value);
    }
  }

  // Does any entry begin with this byte?
  bool has_first(char byte) const {
    return !units_.empty() && units_[units_[0].base ^ static_cast<std::uint8_t>(byte)].parent == 0;
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

  bool empty() const { return units_.empty(); }

 private:
  class Builder;
  static constexpr std::uint32_t kNone = ~0u;
  struct Unit {
    std::uint32_t base = 0;  // of no children: 0, and nobody in that block has this parent
    std::uint32_t parent = kNone;
    std::uint32_t value = kNone;
  };

  std::vector<Unit> units_;  // [0] is the root; whole blocks of 256, so that every base ^ byte is in it
};

}  // namespace assay
