#include "refimpl/handoff/state_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::uint64_t kUnitsOfMany = 192;  // what 1, 2, 3, 4, 6, 8, 12, 16 … ranks divide

std::uint64_t units_of(const StateCut::Member& member) {
  return member.heads <= kUnitsOfMany ? member.heads : std::gcd(member.heads, kUnitsOfMany);
}

// The convolutions of a layer, in the order in which its states are kept.
std::vector<const TensorSpec*> convolutions_of(const ModuleTree& tree, std::uint64_t layer) {
  std::vector<const TensorSpec*> found;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!where.main() || spec.role != Role::convolution || spec.bias) return;
    const bool here = std::any_of(where.path.begin(), where.path.end(), [&](const Module* module) {
      const Repeat& repeat = module->repeat;
      return repeat.over == Repeat::Over::layers &&
             std::binary_search(repeat.indices.begin(), repeat.indices.end(), layer);
    });
    if (here) found.push_back(&spec);
  });
  return found;
}

std::uint64_t heads_of_state(const ModuleTree& tree, std::uint64_t layer) {
  for (const RecurrentGeometry& g : tree.recurrent)
    if (std::find(g.layers.begin(), g.layers.end(), layer) != g.layers.end()) return g.heads;
  return 1;
}

// In one piece where nobody says how it is dealt out: ranks whose parts are smaller are refused (require_widths).
std::vector<StateCut::Member> members_of(const TensorSpec* convolution, std::uint64_t heads,
                                         std::uint64_t length) {
  std::vector<StateCut::Member> members;
  std::uint64_t sum = 0;
  if (convolution != nullptr) {
    for (const PartitionedPart& part : convolution->parallel.members) {
      members.push_back({part.size, part.units});
      sum += part.size;
    }
  } else if (heads > 0 && length % heads == 0) {
    members = {{length, heads}};
    sum = length;
  }
  return sum == length ? members : std::vector<StateCut::Member>{{length, 1}};
}

}  // namespace

StateShape StateCut::shape() const {
  std::size_t sum = 0;
  for (const StateUnit& unit : here) sum += unit.count;
  return of_columns ? StateShape{whole.rows, sum} : StateShape{sum, whole.columns};
}

std::vector<StateCut> state_cuts(const ModuleTree& tree, std::uint64_t layer,
                                 const std::vector<StateShape>& states) {
  if (states.empty()) return {};
  const std::vector<const TensorSpec*> convolutions = convolutions_of(tree, layer);
  std::vector<StateCut> cuts;
  for (std::size_t i = 0; i < states.size(); ++i) {
    StateCut cut;
    cut.whole = states[i];
    cut.of_columns = i < convolutions.size();
    cut.members =
        members_of(cut.of_columns ? convolutions[i] : nullptr, heads_of_state(tree, layer), cut.length());
    for (const StateCut::Member& member : cut.members) cut.units += units_of(member);
    cuts.push_back(cut_state(cut, 1, 0));
  }
  return cuts;
}

// As core/model/parallel_cut.h deals out units.
StateCut cut_state(const StateCut& whole, std::uint64_t ranks, std::uint64_t rank) {
  StateCut cut = whole;
  cut.here.clear();
  std::uint64_t first_unit = 0, first = 0;
  for (const StateCut::Member& member : whole.members) {
    const std::uint64_t units = units_of(member), each = member.size / units;
    std::uint64_t begin = 0, end = 0;
    bool sends = true;
    if (units % ranks == 0) {
      begin = rank * (units / ranks);
      end = begin + units / ranks;
    } else if (ranks % units == 0 && units == member.heads) {
      begin = rank / (ranks / units);
      end = begin + 1;
      sends = rank % (ranks / units) == 0;
    } else {
      throw Error::input(fmt::format("{} heads of a state go in {} parts, which {} ranks do not divide",
                                     member.heads, units, ranks));
    }
    for (std::uint64_t u = begin; u < end; ++u)
      cut.here.push_back({.index = first_unit + u, .first = first + u * each, .count = each, .sends = sends});
    first_unit += units;
    first += member.size;
  }
  return cut;
}

std::optional<std::uint64_t> place_in(const StateCut& cut, std::uint64_t first) {
  std::uint64_t at = 0;
  for (const StateUnit& unit : cut.here) {
    if (unit.first == first) return at;
    at += unit.count;
  }
  return std::nullopt;
}

std::vector<double> take_units(const StateCut& cut, std::span<const double> state, std::uint64_t first,
                               std::uint64_t count) {
  if (cut.lines() == 0) return {};
  const auto place = place_in(cut, first);
  const std::size_t line = state.size() / cut.lines();
  if (!place || (*place + count) * cut.step() > line)
    throw Error::internal("heads of a state that are not here");
  std::vector<double> taken;
  for (std::size_t i = 0; i < cut.lines(); ++i) {
    const auto part = state.subspan(i * line + *place * cut.step(), count * cut.step());
    taken.insert(taken.end(), part.begin(), part.end());
  }
  return taken;
}

std::vector<HeadRange> units_for(const StateCut& from, const StateCut& to) {
  std::vector<HeadRange> runs;
  std::uint64_t last = 0;  // unit
  for (const StateUnit& unit : from.here) {
    if (!unit.sends || !place_in(to, unit.first)) continue;
    const bool goes_on =
        !runs.empty() && unit.index == last + 1 && runs.back().first + runs.back().count == unit.first;
    if (goes_on)
      runs.back().count += unit.count;
    else
      runs.push_back({unit.first, unit.count, from.length()});
    last = unit.index;
  }
  return runs;
}

}  // namespace assay
