#include "refimpl/grammar/matcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"

namespace assay::grammar {
namespace {

constexpr StateId kUnknown = 0xFFFFFFFF;
constexpr std::size_t kMostStepTables = 1 << 16;  // of 1 KB

std::uint64_t place_of(NodeId node, std::uint32_t outer) {
  return std::uint64_t{node} << 32 | outer;
}

[[noreturn]] void refuse(std::string_view what, std::size_t most) {
  throw Error::input(fmt::format("the grammar is too ambiguous: more than {} {}", most, what))
      .remedy("let one text be read in one way");
}

std::uint64_t hash_of(const std::vector<std::uint64_t>& places, bool accepts) {
  std::uint64_t h = accepts ? 0x9E3779B97F4A7C15 : 0;
  for (const std::uint64_t p : places) {
    h = (h ^ p) * 0xBF58476D1CE4E5B9;
    h ^= h >> 29;
  }
  return h;
}

}  // namespace

Matcher::Matcher(Automaton automaton, const MatchLimits& limits)
    : automaton_(std::move(automaton)), limits_(limits), returns_(1), states_(1), steps_(1) {
  enter(place_of(automaton_.root(), 0));
  start_ = intern();
}

StateId Matcher::step(StateId state, std::uint8_t byte) {
  if (state == kDead) return kDead;
  const StateId known = steps_of(state)[byte];
  if (known != kUnknown) return known;
  const StateId next = find_step(state, byte);
  return steps_of(state)[byte] = next;
}

StateId Matcher::read(StateId state, std::string_view bytes) {
  for (const char c : bytes) state = step(state, static_cast<std::uint8_t>(c));
  return state;
}

Matcher::Steps& Matcher::steps_of(StateId state) {
  if (!steps_[state]) {
    if (++step_tables_ > kMostStepTables) {  // what was remembered is found again
      for (auto& table : steps_) table.reset();
      step_tables_ = 1;
    }
    steps_[state] = std::make_unique<Steps>();
    steps_[state]->fill(kUnknown);
  }
  return *steps_[state];
}

StateId Matcher::find_step(StateId state, std::uint8_t byte) {
  found_.clear();  // of a step that was refused half way
  open_.clear();
  seen_.clear();
  found_end_ = false;
  for (std::size_t i = states_[state].begin; i < states_[state].end; ++i) {
    const Node& node = automaton_.node(static_cast<NodeId>(places_[i] >> 32));
    const ByteEdge* edges = automaton_.edges(node);
    for (std::uint32_t e = 0; e < node.end - node.begin; ++e) {
      if (edges[e].first <= byte && byte <= edges[e].last)
        enter(place_of(edges[e].next, static_cast<ReturnId>(places_[i])));
    }
  }
  return intern();
}

void Matcher::enter(Place place) {
  open_.push_back(place);
  while (!open_.empty()) {
    const Place next = open_.back();
    open_.pop_back();
    if (!seen_.insert(next).second) continue;
    if (seen_.size() > 8 * limits_.places_of_a_state)
      refuse("ways to read one character", limits_.places_of_a_state);
    follow(static_cast<NodeId>(next >> 32), static_cast<ReturnId>(next));
  }
}

void Matcher::follow(NodeId id, ReturnId outer) {
  const Node& node = automaton_.node(id);
  if (!node.productive) return;
  switch (node.kind) {
    case Node::Kind::bytes: found_.push_back(place_of(id, outer)); break;
    case Node::Kind::split:
      for (std::uint32_t t = 0; t < node.end - node.begin; ++t)
        open_.push_back(place_of(automaton_.targets(node)[t], outer));
      break;
    case Node::Kind::call:
      open_.push_back(place_of(automaton_.start(node.rule), node.tail ? outer : return_to(node.next, outer)));
      break;
    case Node::Kind::end:
      if (outer == 0) {
        found_end_ = true;
      } else {
        open_.push_back(place_of(returns_[outer].node, returns_[outer].outer));
      }
      break;
  }
}

Matcher::ReturnId Matcher::return_to(NodeId node, ReturnId outer) {
  const auto [found, is_new] =
      return_ids_.try_emplace(place_of(node, outer), static_cast<ReturnId>(returns_.size()));
  if (is_new) {
    if (returns_.size() >= limits_.returns) refuse("rules begun", limits_.returns);
    returns_.push_back({node, outer});
  }
  return found->second;
}

StateId Matcher::intern() {
  std::sort(found_.begin(), found_.end());
  const bool accepts = found_end_;
  std::vector<Place> found = std::move(found_);
  found_.clear();
  seen_.clear();
  found_end_ = false;
  if (found.empty() && !accepts) return kDead;
  const std::uint64_t hash = hash_of(found, accepts);
  const auto [begin, end] = state_ids_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const State& s = states_[it->second];
    if (s.accepts == accepts &&
        std::equal(places_.begin() + static_cast<std::ptrdiff_t>(s.begin),
                   places_.begin() + static_cast<std::ptrdiff_t>(s.end), found.begin(), found.end()))
      return it->second;
  }
  if (found.size() > limits_.places_of_a_state) refuse("ways to read one text", limits_.places_of_a_state);
  if (places_.size() + found.size() > limits_.places) refuse("ways to read the texts tried", limits_.places);
  if (states_.size() >= limits_.states) refuse("states", limits_.states);
  const auto id = static_cast<StateId>(states_.size());
  states_.push_back({places_.size(), places_.size() + found.size(), accepts});
  places_.insert(places_.end(), found.begin(), found.end());
  steps_.emplace_back();
  state_ids_.emplace(hash, id);
  return id;
}

}  // namespace assay::grammar
