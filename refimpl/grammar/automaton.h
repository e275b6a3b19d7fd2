// A grammar as a machine over bytes: one graph a rule, in which an edge is a byte, a call of a rule, or nothing.
// UTF-8 is part of the graphs, so that a token may end within a character, and what is no UTF-8 never fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "refimpl/grammar/syntax.h"

namespace assay::grammar {

using NodeId = std::uint32_t;

struct ByteEdge {
  std::uint8_t first = 0, last = 0;
  NodeId next = 0;
};

struct Node {
  enum class Kind : std::uint8_t { bytes, call, split, end };
  Kind kind = Kind::end;
  bool tail = false;                 // of a call: nothing comes after it, so that nothing need be remembered
  bool productive = false;           // some text leads from here to the rule's end
  std::uint32_t rule = 0;            // of a call
  NodeId next = 0;                   // of a call
  std::uint32_t begin = 0, end = 0;  // of bytes: its edges; of a split: its targets
};

class Automaton {
 public:
  // Throws Error::input where a rule is left recursive (named), where no text fits the root, or where the graphs
  // would have more than `most_nodes`.
  explicit Automaton(const Grammar& grammar, std::size_t most_nodes = 4'000'000);

  const Node& node(NodeId id) const { return nodes_[id]; }
  const ByteEdge* edges(const Node& node) const { return edges_.data() + node.begin; }
  const NodeId* targets(const Node& node) const { return targets_.data() + node.begin; }
  NodeId start(std::uint32_t rule) const { return starts_[rule]; }
  NodeId root() const { return starts_[root_]; }
  std::size_t size() const { return nodes_.size(); }

 private:
  friend class AutomatonBuilder;

  std::vector<Node> nodes_;
  std::vector<ByteEdge> edges_;
  std::vector<NodeId> targets_;
  std::vector<NodeId> starts_;  // of the rules, those made for repetitions after the written ones
  std::uint32_t root_ = 0;
};

// Byte sequences of the code points of a class: each a range a byte, at most four, apart from one another.
using ByteRanges = std::vector<std::pair<std::uint8_t, std::uint8_t>>;
std::vector<ByteRanges> utf8_ranges(const std::vector<CodeRange>& characters);

}  // namespace assay::grammar
