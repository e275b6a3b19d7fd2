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

// Of every rank, in their order, as `engine` cuts. Empty where it refuses the layout, and of more than 4096 ranks.
struct PlannedRanks {
  std::optional<EngineAt> engine;
  std::vector<RankWeights> ranks;
  std::string why_none;  // where they could be told, and would be wrong
};
PlannedRanks planned_ranks(const ModuleTree& tree, const Layout& layout, const PlanOptions& options,
                           const EngineAt& engine, const std::vector<Refusal>& refusals);
// As the first of the engines cuts; assay's are those of the plan. `stored_as_gguf`: they are not told.
PlannedRanks ranks_of_plan(const ModuleTree& tree, const Plan& plan, const PlanOptions& options,
                           bool stored_as_gguf);

}  // namespace assay
