// What may come next, as guesses: a tree, of which a chain is the plainest. All are computed in one step; the way from its
// root that turns out right is kept.
//
//   newest sure token ─┬─ guess 0 ─┬─ guess 1
//                      │           └─ guess 2
//                      └─ guess 3
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "refimpl/ops/calls.h"

namespace assay {

struct Guess {
  TokenId token = 0;
  std::size_t parent = 0;   // 0: behind the newest sure token; i + 1: behind guess i, which comes before it
  std::vector<double> law;  // that it was drawn from; empty: it was certain
};

struct GuessTree {
  std::vector<Guess> guesses;
  std::size_t rows = 0;  // that the draft computed for them

  std::size_t size() const { return guesses.size(); }
  bool is_chain() const {
    for (std::size_t i = 0; i < size(); ++i)
      if (guesses[i].parent != i) return false;
    return true;
  }
  // From the guess's first ancestor to itself.
  std::vector<std::size_t> way_to(std::size_t guess) const {
    std::vector<std::size_t> way = {guess};
    while (guesses[way.front()].parent > 0) way.insert(way.begin(), guesses[way.front()].parent - 1);
    return way;
  }
  // Behind `parent`, which is as Guess::parent is; of the first `known` ones.
  std::vector<std::size_t> children(std::size_t parent, std::size_t known) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < known && i < size(); ++i)
      if (guesses[i].parent == parent) found.push_back(i);
    return found;
  }
};

// How many guesses stand behind each, level by level: {1, 1, 1} is a chain of three.
using TreeShape = std::vector<std::size_t>;
std::size_t guesses_of(std::span<const std::size_t> shape);

}  // namespace assay
