#include "refimpl/grammar/automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/system/error.h"

namespace assay::grammar {

// Graphs are made from their end: build(what, next) is where `what` begins when `next` comes after it.
class AutomatonBuilder {
 public:
  AutomatonBuilder(Automaton& made, const Grammar& grammar, std::size_t most_nodes)
      : made_(made), grammar_(grammar), most_nodes_(most_nodes) {}

  void run() {
    made_.root_ = static_cast<std::uint32_t>(grammar_.root);
    made_.starts_.resize(grammar_.rules.size());
    for (const Rule& rule : grammar_.rules) names_.push_back(rule.name);
    for (std::size_t i = 0; i < grammar_.rules.size(); ++i) {
      current_ = grammar_.rules[i].name;
      made_.starts_[i] = build(grammar_.rules[i].body, add({}));
    }
    refuse_left_recursion();
    const std::vector<bool> productive = reaching_end(true);
    for (std::size_t i = 0; i < productive.size(); ++i) made_.nodes_[i].productive = productive[i];
    if (!productive[made_.root()])
      throw Error::input("no text fits the grammar: 'root' never comes to an end");
  }

 private:
  NodeId add(Node node) {
    if (made_.nodes_.size() >= most_nodes_)
      throw Error::input(fmt::format("the grammar needs more than {} states", most_nodes_))
          .remedy("ask for fewer repetitions");
    made_.nodes_.push_back(node);
    return static_cast<NodeId>(made_.nodes_.size() - 1);
  }

  NodeId add_split(const std::vector<NodeId>& targets) {
    Node node = {.kind = Node::Kind::split, .begin = static_cast<std::uint32_t>(made_.targets_.size())};
    made_.targets_.insert(made_.targets_.end(), targets.begin(), targets.end());
    node.end = static_cast<std::uint32_t>(made_.targets_.size());
    return add(node);
  }

  NodeId add_call(std::uint32_t rule, NodeId next) {
    const bool tail = made_.nodes_[next].kind == Node::Kind::end;
    return add({.kind = Node::Kind::call, .tail = tail, .rule = rule, .next = next});
  }

  NodeId build(const Expression& e, NodeId next) {
    switch (e.kind) {
      case Expression::Kind::characters: {
        std::map<std::vector<ByteRanges>, NodeId> shared;
        return build_bytes(utf8_ranges(e.characters), next, shared);
      }
      case Expression::Kind::rule: return add_call(static_cast<std::uint32_t>(e.rule), next);
      case Expression::Kind::sequence:
        for (auto part = e.parts.rbegin(); part != e.parts.rend(); ++part) next = build(*part, next);
        return next;
      case Expression::Kind::choice: {
        std::vector<NodeId> targets;
        for (const Expression& part : e.parts) targets.push_back(build(part, next));
        return add_split(targets);
      }
      case Expression::Kind::repeat: return build_repetition(e, next);
    }
    return next;
  }

  // Sequences that go on alike share what comes after: every class of many characters ends in the same few nodes.
  NodeId build_bytes(const std::vector<ByteRanges>& sequences, NodeId next,
                     std::map<std::vector<ByteRanges>, NodeId>& shared) {
    if (sequences.size() == 1 && sequences.front().empty()) return next;
    if (const auto found = shared.find(sequences); found != shared.end()) return found->second;
    std::vector<ByteEdge> edges;
    for (std::size_t i = 0; i < sequences.size();) {
      const auto range = sequences[i].front();
      std::vector<ByteRanges> rest;
      for (; i < sequences.size() && sequences[i].front() == range; ++i)
        rest.emplace_back(sequences[i].begin() + 1, sequences[i].end());
      edges.push_back({range.first, range.second, build_bytes(rest, next, shared)});
    }
    Node node = {.kind = Node::Kind::bytes, .begin = static_cast<std::uint32_t>(made_.edges_.size())};
    made_.edges_.insert(made_.edges_.end(), edges.begin(), edges.end());
    node.end = static_cast<std::uint32_t>(made_.edges_.size());
    return shared[sequences] = add(node);
  }

  // x{m,n} is m calls of x and n - m that may be left out, x* a loop: never a copy of x itself.
  NodeId build_repetition(const Expression& e, NodeId next) {
    if (e.most == 0) return next;
    const Expression& part = e.parts.front();
    auto once = [&, rule = std::uint32_t{0}](NodeId after) mutable {
      if (e.least + std::uint64_t{e.most == kUnbounded ? 1 : e.most - e.least} == 1)
        return build(part, after);
      if (part.kind == Expression::Kind::rule) return add_call(static_cast<std::uint32_t>(part.rule), after);
      if (rule == 0) rule = add_rule(part);
      return add_call(rule, after);
    };
    NodeId at = next;
    if (e.most == kUnbounded) {
      const NodeId loop = add_split(std::vector<NodeId>{next, next});
      const NodeId body = once(loop);
      made_.targets_[made_.nodes_[loop].begin] = body;
      at = loop;
    } else {
      for (std::uint32_t i = e.least; i < e.most; ++i) at = add_split(std::vector<NodeId>{once(at), next});
    }
    for (std::uint32_t i = 0; i < e.least; ++i) at = once(at);
    return at;
  }

  std::uint32_t add_rule(const Expression& body) {
    const auto number = static_cast<std::uint32_t>(made_.starts_.size());
    made_.starts_.push_back(0);
    names_.push_back(current_);
    const NodeId start = build(body, add({}));
    made_.starts_[number] = start;
    return number;
  }

  // The nodes from which a rule's end is reached by some text (through_bytes), or by none at all.
  std::vector<bool> reaching_end(bool through_bytes) const {
    const std::size_t n = made_.nodes_.size();
    std::vector<std::vector<NodeId>> before(n), calls_of(made_.starts_.size());
    std::vector<std::vector<std::uint32_t>> rules_at(n);
    std::vector<bool> reaches(n);
    std::vector<NodeId> fresh;
    for (NodeId i = 0; i < n; ++i) {
      const Node& node = made_.nodes_[i];
      if (node.kind == Node::Kind::call) {
        before[node.next].push_back(i);
        calls_of[node.rule].push_back(i);
      }
      for (std::uint32_t e = node.begin; e < node.end; ++e) {
        if (node.kind == Node::Kind::split) before[made_.targets_[e]].push_back(i);
        if (node.kind == Node::Kind::bytes && through_bytes) before[made_.edges_[e].next].push_back(i);
      }
      if (node.kind == Node::Kind::end) fresh.push_back(i);
    }
    for (std::uint32_t r = 0; r < made_.starts_.size(); ++r) rules_at[made_.starts_[r]].push_back(r);
    while (!fresh.empty()) {
      const NodeId at = fresh.back();
      fresh.pop_back();
      if (reaches[at]) continue;
      reaches[at] = true;
      const auto consider = [&](NodeId i) {
        const Node& node = made_.nodes_[i];
        const bool ready =
            node.kind != Node::Kind::call || (reaches[node.next] && reaches[made_.starts_[node.rule]]);
        if (ready && !reaches[i]) fresh.push_back(i);
      };
      for (const NodeId i : before[at]) consider(i);
      for (const std::uint32_t r : rules_at[at])
        for (const NodeId i : calls_of[r]) consider(i);
    }
    return reaches;
  }

  // Rules that a rule may call before it has read anything.
  std::vector<std::uint32_t> called_first(std::uint32_t rule, const std::vector<bool>& empty,
                                          std::vector<std::uint32_t>& seen_by) const {
    std::vector<std::uint32_t> called;
    std::vector<NodeId> open = {made_.starts_[rule]};
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      if (seen_by[at] == rule + 1) continue;
      seen_by[at] = rule + 1;
      const Node& node = made_.nodes_[at];
      if (node.kind == Node::Kind::call) {
        called.push_back(node.rule);
        if (empty[made_.starts_[node.rule]]) open.push_back(node.next);
      } else if (node.kind == Node::Kind::split) {
        open.insert(open.end(), made_.targets_.begin() + node.begin, made_.targets_.begin() + node.end);
      }
    }
    return called;
  }

  // A rule that can come to itself without reading anything would call itself without end.
  void refuse_left_recursion() const {
    const std::vector<bool> empty = reaching_end(false);
    enum class Mark : std::uint8_t { fresh, open, done };
    std::vector<Mark> marks(made_.starts_.size(), Mark::fresh);
    std::vector<std::uint32_t> seen_by(made_.nodes_.size());
    struct Visit {
      std::uint32_t rule;
      std::vector<std::uint32_t> called;
      std::size_t next = 0;
    };
    for (std::uint32_t first = 0; first < marks.size(); ++first) {
      if (marks[first] != Mark::fresh) continue;
      std::vector<Visit> path;
      path.push_back({first, called_first(first, empty, seen_by)});
      marks[first] = Mark::open;
      while (!path.empty()) {
        Visit& top = path.back();
        if (top.next == top.called.size()) {
          marks[top.rule] = Mark::done;
          path.pop_back();
          continue;
        }
        const std::uint32_t rule = top.called[top.next++];
        if (marks[rule] == Mark::open)
          throw Error::input(
              fmt::format("rule '{}' is left recursive: it may begin with itself", names_[rule]))
              .remedy("let the rule read something before it comes to itself");
        if (marks[rule] == Mark::done) continue;
        marks[rule] = Mark::open;
        path.push_back({rule, called_first(rule, empty, seen_by)});
      }
    }
  }

  Automaton& made_;
  const Grammar& grammar_;
  std::size_t most_nodes_;
  std::vector<std::string> names_;
  std::string current_;
};

Automaton::Automaton(const Grammar& grammar, std::size_t most_nodes) {
  AutomatonBuilder(*this, grammar, most_nodes).run();
}

}  // namespace assay::grammar
