// How ranks cut the states that recurrent layers carry, of which there is no row a token:
//
//   convolution  [kernel - 1, channels]: channels lie as what passes through them (q | k | v), each member cut by its heads;
//                heads fewer than ranks are repeated
//   of a scan    [heads · …, …]: rows, in the order of heads
//
// A unit is a run of one member's heads, as long as numbers of ranks that divide 192 leave whole: the least that goes, and that
// is sealed, by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/model/module_tree.h"
#include "refimpl/handoff/handoff_part.h"
#include "refimpl/step/kv_cache.h"

namespace assay {

struct StateUnit {
  std::uint64_t index = 0;             // of the whole state's units
  std::uint64_t first = 0, count = 0;  // channels, or rows, of the whole state
  bool sends = true;                   // of ranks that have the same the first one sends
};

struct StateCut {
  struct Member {
    std::uint64_t size = 0, heads = 1;  // size: channels, or rows
  };
  StateShape whole;
  bool of_columns = false;      // else rows are cut
  std::vector<Member> members;  // of the whole, in their order
  std::uint64_t units = 0;      // of the whole
  std::vector<StateUnit> here;  // in the order in which they lie

  std::uint64_t length() const { return of_columns ? whole.columns : whole.rows; }  // of the axis that is cut
  StateShape shape() const;                                                         // of what is here
  // On end there are lines() runs of numbers; of each, index i of the axis has step() numbers.
  std::size_t lines() const { return of_columns ? whole.rows : 1; }
  std::size_t step() const { return of_columns ? 1 : whole.columns; }
};

// Of one process: all units of each of the layer's states.
std::vector<StateCut> state_cuts(const ModuleTree& tree, std::uint64_t layer,
                                 const std::vector<StateShape>& states);
// Of those what one rank of a tensor-parallel model has. Throws Error::input where its heads do not come out even.
StateCut cut_state(const StateCut& whole, std::uint64_t ranks, std::uint64_t rank);

// Indices [first, first + count) of the axis that is cut, of a state of which `cut.here` lies here; these must.
std::vector<double> take_units(const StateCut& cut, std::span<const double> state, std::uint64_t first,
                               std::uint64_t count);
// Where index `first` of the whole axis lies here.
std::optional<std::uint64_t> place_in(const StateCut& cut, std::uint64_t first);
// Runs of units that `from` sends and `to` has.
std::vector<HeadRange> units_for(const StateCut& from, const StateCut& to);

}  // namespace assay
