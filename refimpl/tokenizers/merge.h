// Byte-pair merging, once for all vocabularies that work that way.
//
// Of all adjacent pairs that can merge, the best is merged, the leftmost of equals first, until none is left.
// A heap and a linked list make it O(n log n) in the word's length, whatever the word: a megabyte without a
// space included. (Sennrich et al., arXiv:1508.07909; the vocabularies differ in what "best" is.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

struct MergeSymbol {
  std::uint32_t begin = 0, length = 0;  // in bytes of the word; length 0: swallowed by the one before it
  std::int32_t previous = -1, next = -1;
  TokenId id = 0;
};

struct Merge {
  double cost = 0;  // least first: a rank, or a score negated
  TokenId id = 0;   // of the merged piece
};

class MergeQueue {
 public:
  // A word's symbols, in order; every length > 0.
  std::vector<MergeSymbol> symbols;

  void clear() { symbols.clear(); }
  void add(std::uint32_t begin, std::uint32_t length, TokenId id) {
    const auto at = static_cast<std::int32_t>(symbols.size());
    if (at > 0) symbols.back().next = at;
    symbols.push_back({begin, length, at - 1, -1, id});
  }

  // `find(left, right)` says, as std::optional<Merge>, whether and as what two symbols merge.
  template <class Find>
  void run(Find find) {
    heap_.clear();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<std::int32_t>(i), find);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate best = heap_.back();
      heap_.pop_back();
      MergeSymbol& left = symbols[static_cast<std::size_t>(best.left)];
      if (left.length == 0 || left.next < 0) continue;
      MergeSymbol& right = symbols[static_cast<std::size_t>(left.next)];
      // Symbols only grow, so equal length means that neither changed since the pair was seen.
      if (left.length + right.length != best.length) continue;
      left.length = best.length;
      left.id = best.id;
      left.next = right.next;
      right.length = 0;
      if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = best.left;
      if (left.previous >= 0) consider(left.previous, find);
      consider(best.left, find);
    }
  }

  // Calls take(symbol) for what is left.
  template <class Take>
  void for_each(Take take) const {
    for (const MergeSymbol& symbol : symbols) {
      if (symbol.length > 0) take(symbol);
    }
  }

 private:
  struct Candidate {
    double cost;
    std::int32_t left;
    std::uint32_t length;  // of both together
    TokenId id;
    // The heap's top is its greatest: cheapest first, then leftmost.
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.cost != b.cost ? a.cost > b.cost : a.left > b.left;
    }
  };

  template <class Find>
  void consider(std::int32_t at, Find& find) {
    const MergeSymbol& left = symbols[static_cast<std::size_t>(at)];
    if (left.next < 0) return;
    const MergeSymbol& right = symbols[static_cast<std::size_t>(left.next)];
    const std::optional<Merge> merge = find(left, right);
    if (!merge) return;
    heap_.push_back({merge->cost, at, left.length + right.length, merge->id});
    std::push_heap(heap_.begin(), heap_.end());
  }

  std::vector<Candidate> heap_;
};

}  // namespace assay
