// The bytes of weights that each rank of a grid holds when assay cuts a model (refimpl/ranks), from the module tree and
// the form alone: what `paramcount --plan --engine assay` tells, and what `run` holds its ranks to.
//
//   matrices, vectors      the share of core/model/parallel_cut.h; rows of zeros of a padded vocabulary count
//   codes under scales     codes, and the scales that go with them (scale_cut.h)
//   codes that lie within bytes or words of others (FP4 cut at an odd place, packed integers), as float32
//
// GGUF's blocks are counted as if they could be cut anywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/rank_grid.h"
#include "core/model/weight_bytes.h"

namespace assay {

struct RankWeights {
  RankPlace place;
  std::uint64_t parameters = 0, bytes = 0;
};
// Of all ranks, in their order. `with_mtp`: prediction layers are loaded, where neither stages nor copies are asked for.
std::vector<RankWeights> rank_weights(const ModuleTree& tree, const RankGrid& grid,
                                      const WeightFormat& format, bool with_mtp);

// StableLM has norms that lie apart, one a head, whose number is in their name: is this one of another rank's head?
bool is_norm_of_other_head(const TensorSpec& spec, const ModuleTree& tree, std::uint64_t layer,
                           const RankPlace& place);

}  // namespace assay
