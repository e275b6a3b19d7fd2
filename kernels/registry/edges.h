// Sizes at which a kernel's code goes another way: what it declares of itself, and the grid has cases for.
//
//   {.of = "m", .from = 6}      from 6 tokens on another branch, tile or piece: cases of 5, 6 and 7
//   {.of = "k", .every = 16}    a loop of 16 at a time, with a tail: a case for each remainder
//
// The size is called as the operation's cases call it (kernels/harness/*_cases.cpp: OpCases::at), which make
// a small case of it. Declared is the widest there is of what depends on the instruction set, so that the
// cases are the same everywhere: a loop of 16 has the tails of one of 8.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace assay {

struct Edge {
  std::string_view of;
  std::size_t from = 0;
  std::size_t every = 0;
};
using Edges = std::vector<Edge>;

// The sizes to try: both sides of `from`; or two rounds of `every` and each remainder.
inline std::vector<std::size_t> sizes_around(const Edge& edge) {
  std::vector<std::size_t> sizes;
  if (edge.from > 1) sizes.push_back(edge.from - 1);
  if (edge.from > 0) sizes.insert(sizes.end(), {edge.from, edge.from + 1});
  for (std::size_t i = 0; i < edge.every; ++i) sizes.push_back(2 * edge.every + i);
  return sizes;
}

}  // namespace assay
