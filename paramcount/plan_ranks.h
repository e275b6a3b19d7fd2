// What each rank of a layout holds of the weights: parameters, and bytes in the form that is planned with.
#pragma once

#include <optional>
#include <vector>

#include "core/model/rank_weights.h"
#include "paramcount/plan_cut.h"

namespace assay {

// Of one stage's ranks the fullest, or the one at `place`, as `engine` cuts (assay itself: core/model/rank_weights.h).
struct HeldWeights {
  std::uint64_t parameters = 0, bytes = 0;
};
HeldWeights held_weights(const ModuleTree& tree, const Layout& layout, const PlanOptions& options,
                         const EngineAt& engine, std::uint64_t stage, const RankPlace* place = nullptr);

// Of every rank, in their order, as the first of the engines cuts. Empty where that engine refuses the layout, and of
// more than 4096 ranks.
struct PlannedRanks {
  std::optional<EngineAt> engine;
  std::vector<RankWeights> ranks;
};
PlannedRanks planned_ranks(const ModuleTree& tree, const Layout& layout, const PlanOptions& options,
                           const std::vector<Refusal>& refusals);

}  // namespace assay
