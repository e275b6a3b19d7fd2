// Reads bytes by a grammar. What it has read so far is a state: a number that stays good as long as the matcher lives,
// so that keeping a state, copying it and going back to it cost nothing.
//
//   Matcher matcher(Automaton(grammar));
//   StateId state = matcher.start();
//   for (const char c : text) state = matcher.step(state, c);     // kDead: no text that goes on so fits
//   if (matcher.accepts(state)) ...                               // the text is whole
//
// A state is the set of all the places in the grammar at which the text so far may have arrived, each with the rules to
// go back to: a list whose tails are shared, so that a thousand open brackets cost a thousand entries once. States and
// steps between them are found once and remembered. Not for several threads at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "refimpl/grammar/automaton.h"

namespace assay::grammar {

using StateId = std::uint32_t;
inline constexpr StateId kDead = 0;

// Against grammars in which a text can be read in ever more ways: Error::input beyond them.
struct MatchLimits {
  std::size_t places_of_a_state = 5'000;
  std::size_t places = 20'000'000;  // of all states
  std::size_t states = 2'000'000;
  std::size_t returns = 10'000'000;
};

class Matcher {
 public:
  explicit Matcher(Automaton automaton, const MatchLimits& limits = {});

  StateId start() const { return start_; }
  StateId step(StateId state, std::uint8_t byte);
  StateId read(StateId state, std::string_view bytes);
  bool accepts(StateId state) const { return states_[state].accepts; }
  // May anything follow?
  bool goes_on(StateId state) const { return states_[state].begin != states_[state].end; }
  std::size_t states() const { return states_.size(); }

 private:
  using ReturnId = std::uint32_t;  // 0: the root's end is the text's end
  using Place = std::uint64_t;     // a node of kind bytes, and where its rule returns to
  struct Return {
    NodeId node = 0;
    ReturnId outer = 0;
  };
  struct State {
    std::size_t begin = 0, end = 0;  // its places
    bool accepts = false;
  };
  using Steps = std::array<StateId, 256>;

  StateId find_step(StateId state, std::uint8_t byte);
  void follow(NodeId node, ReturnId outer);  // adds the places reached without reading to found_
  void enter(Place place);
  ReturnId return_to(NodeId node, ReturnId outer);
  StateId intern();  // the state of found_
  Steps& steps_of(StateId state);

  Automaton automaton_;
  MatchLimits limits_;
  std::vector<Return> returns_;
  std::unordered_map<std::uint64_t, ReturnId> return_ids_;
  std::vector<State> states_;
  std::vector<Place> places_;
  std::unordered_multimap<std::uint64_t, StateId> state_ids_;  // by a hash of the places
  std::vector<std::unique_ptr<Steps>> steps_;
  std::size_t step_tables_ = 0;
  StateId start_ = kDead;

  std::vector<Place> found_, open_;
  std::unordered_set<Place> seen_;
  bool found_end_ = false;
};

}  // namespace assay::grammar
