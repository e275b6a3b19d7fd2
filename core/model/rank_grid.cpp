#include "core/model/rank_grid.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/layer_geometry.h"
#include "core/system/error.h"

namespace assay {
namespace {

// Whose forward rules nobody has held against a cut one.
bool is_unknown(Role role) {
  return role == Role::tower || role == Role::other;
}

class Refusals {
 public:
  void add(std::string line) {
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  std::vector<std::string> lines;
};

void refuse_heads(const ModuleTree& tree, const RankGrid& grid, Refusals& refusals) {
  for (const RecurrentGeometry& g : tree.recurrent) {
    if (g.heads % grid.tp != 0)
      refusals.add(fmt::format("{}: {} heads over {} ranks", g.title, g.heads, grid.tp));
  }
}

void refuse_tensors(const ModuleTree& tree, const RankGrid& grid, Refusals& refusals) {
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (where.tower || spec.storage == Storage::buffer) return;
    if (is_unknown(spec.role)) refusals.add(fmt::format("{} is not known to be cut", spec.name));
    const RankPlace place = {grid, 0};
    const ParallelConfig cut = place.cut_of(spec.part);
    if (const auto refusal = refusal_to_cut(spec, cut, 1, false))
      refusals.add(fmt::format("{}: {}", refusal->arithmetic, refusal->message));
    // Of members that lie one by one in another, a repeated one would count twice in the sum behind it.
    for (const PartitionedPart& member : spec.parallel.members) {
      const bool key = member.role == Role::k || member.role == Role::v || member.role == Role::q ||
                       member.role == Role::k_norm;
      if (cut_ranks(spec, cut) > member.units && !key)
        refusals.add(
            fmt::format("{}: {} units over {} ranks", spec.name, member.units, cut_ranks(spec, cut)));
    }
  });
}

}  // namespace

std::string RankGrid::text() const {
  std::string text = fmt::format("tp={}", tp);
  for (const auto& [name, value] : {std::pair{"pp", pp}, {"ep", ep}, {"dp", dp}})
    if (value > 1) text += fmt::format(",{}={}", name, value);
  return text;
}

// As vLLM deals them out: what is over goes to the stages before the last, since the last one has the head.
IndexRange RankPlace::layers(std::size_t of_model) const {
  std::vector<std::size_t> sizes(grid.pp, of_model / grid.pp);
  for (std::size_t i = 0; i < of_model % grid.pp; ++i) ++sizes[grid.pp - 2 - i];
  IndexRange range;
  for (std::size_t s = 0; s < stage(); ++s) range.begin += sizes[s];
  range.end = range.begin + sizes[stage()];
  return range;
}

ParallelConfig RankPlace::cut_of(Part part) const {
  if (part == Part::routed_expert) return {grid.ranks_of_a_stage(), grid.ep};
  return {grid.tp, 1};
}

std::uint64_t RankPlace::rank_of(Part part) const {
  return part == Part::routed_expert ? in_stage() : in_tp();
}

void check_ranks(const RankGrid& grid) {
  for (const std::size_t n : {grid.tp, grid.pp, grid.ep, grid.dp})
    if (n == 0 || n > 1024) throw Error::usage("--tp, --pp, --ep and --dp take 1 to 1024 ranks");
  if (grid.ranks() > 1024) throw Error::usage(fmt::format("{} are more than 1024 ranks", grid.text()));
  if (grid.ranks_of_a_stage() % grid.ep != 0)
    throw Error::usage(fmt::format("--ep {} does not divide tp × dp = {}", grid.ep, grid.ranks_of_a_stage()))
        .remedy("experts are dealt out over groups of the ranks of one stage");
}

std::vector<std::string> refusals_to_run(const ModuleTree& tree, const RankGrid& grid) {
  Refusals refusals;
  if (grid.pp > tree.layers) refusals.add(fmt::format("{} layers over {} stages", tree.layers, grid.pp));
  if (grid.ep > 1 && tree.experts == 0) refusals.add("a model without experts has none to deal out");
  if (grid.ep > 1 && tree.experts % grid.ep != 0)
    refusals.add(fmt::format("{} experts over {} groups", tree.experts, grid.ep));
  if (grid.ep > 1 && experts_differ(tree))
    refusals.add("layers have different numbers of experts, which are not dealt out");
  if (grid.tp > 1) {
    for (std::string& line : refusals_to_cut(tree, {grid.tp, 1})) refusals.add(std::move(line));
    refuse_heads(tree, grid, refusals);
  }
  if (grid.ranks_of_a_stage() > 1) refuse_tensors(tree, grid, refusals);
  return std::move(refusals.lines);
}

}  // namespace assay
