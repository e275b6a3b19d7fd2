// How a model is dealt out over processes, and what one of them is in it. The words are `paramcount --plan`'s:
//
//   tp   attention, dense MLP, shared experts, embedding and head are cut over tp ranks
//   pp   layers are dealt out over pp stages; what does not divide goes to the first ones
//   dp   so many copies of attention and dense parts, each with texts of its own
//   ep   routed experts are dealt out over ep groups of a stage's tp × dp ranks, and each is cut over the
//        tp × dp / ep ranks of its group
//
// Rank r is number r % tp of copy r / tp % dp in stage r / (tp · dp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/model/module_tree.h"
#include "core/model/parallel_cut.h"

namespace assay {

struct RankGrid {
  std::size_t tp = 1, pp = 1, ep = 1, dp = 1;
  std::size_t ranks() const { return tp * pp * dp; }
  std::size_t ranks_of_a_stage() const { return tp * dp; }  // which share the routed experts
  std::size_t ranks_of_an_expert() const { return tp * dp / ep; }
  std::string text() const;  // "tp=2,pp=2"
};

struct RankPlace {
  RankGrid grid;
  std::size_t rank = 0;

  std::size_t in_tp() const { return rank % grid.tp; }
  std::size_t copy() const { return rank / grid.tp % grid.dp; }
  std::size_t stage() const { return rank / grid.ranks_of_a_stage(); }
  std::size_t in_stage() const { return rank % grid.ranks_of_a_stage(); }
  std::size_t expert_group() const { return in_stage() / grid.ranks_of_an_expert(); }
  bool first_stage() const { return stage() == 0; }
  bool last_stage() const { return stage() + 1 == grid.pp; }
  IndexRange layers(std::size_t of_model) const;  // of the rank's stage
  // What core/model/parallel_cut.h is to be asked of a tensor of this part, and as which rank.
  ParallelConfig cut_of(Part part) const;
  std::uint64_t rank_of(Part part) const;
};

// What of this model cannot be cut so, or is not known to: one line each, the reason in it. Empty: nothing.
std::vector<std::string> refusals_to_run(const ModuleTree& tree, const RankGrid& grid);
// Throws Error::usage where the numbers do not belong together.
void check_ranks(const RankGrid& grid);

}  // namespace assay
