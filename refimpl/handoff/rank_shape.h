// What one rank keeps of a model's cache, and which part of that it sends.
#pragma once

#include <vector>

#include "core/model/rank_grid.h"
#include "refimpl/handoff/cache_shape.h"

namespace assay {

// Layers of its stage, by their numbers in the whole model, and what these read of earlier ones; of each the heads of its place
// in tp. Copies (dp) keep the same, experts (ep) nothing. `model`: the whole one. Throws Error::input, in a line, where heads do
// not come out even, and for stages that it has not.
CacheShape shape_of_rank(const CacheShape& whole, const LanguageModel& model, const RankPlace& place);
// The rank's model keeps rows and states as wide as its shape says. Throws Error::input where they are cut otherwise than by
// whole heads.
void require_widths(const CacheShape& shape, const std::vector<CacheWidth>& widths);

}  // namespace assay
