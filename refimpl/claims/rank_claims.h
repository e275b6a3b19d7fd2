// A model cut over ranks, held against one process that has all of it; and the faults that must be seen there.
#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "refimpl/claims/claims.h"
#include "refimpl/ranks/rank_run.h"

namespace assay {

struct RankClaimRequest {
  std::filesystem::path path;
  RankedSettings settings;  // the grid, and how it is computed
  std::vector<TokenId> tokens;
  std::size_t decode = 3;  // tokens made behind the text
  std::chrono::milliseconds limit{10'000};
};

struct RankVerdict {
  std::vector<Claim> claims;
  std::string first_divergence;   // "layers.0.k at rank 2 (tp=4)"; empty: none
  std::vector<RankReport> ranks;  // of the cut run, without its taps
};

// Under the tree: bits of logits and of every intermediate at every rank, and of a second run; in the order of ranks: every
// sum within 4 √K u of the tree's. With copies: texts for all of them, and for the first alone.
// Throws Error::input where the model cannot be cut so.
RankVerdict rank_claims(const RankClaimRequest& request);

struct PlantedRankFault {
  RankFault fault = RankFault::none;
  int number = 0;  // as docs/serving.md counts them
  std::string shipped_in, what;
  std::string shown_by;  // the claim that must fall: "ranks_taps"
};
std::span<const PlantedRankFault> rank_faults();

struct RankFaultVerdict {
  const PlantedRankFault* planted = nullptr;
  bool applies = false;  // to this model and grid
  bool caught = false;   // the claim that it is shown by fell
  std::string by;        // what was seen
};
std::vector<RankFaultVerdict> plant_rank_faults(const RankClaimRequest& request);

}  // namespace assay
