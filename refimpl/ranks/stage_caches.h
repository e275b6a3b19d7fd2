// Which layers' caches a stage of a pipeline keeps: those of its own layers, and those of earlier ones that its layers read.
#pragma once

#include <cstddef>
#include <vector>

#include "core/model/parallel_cut.h"
#include "refimpl/models/staged_model.h"

namespace assay {

// Layers before `border` whose keys and values layers behind it attend to, in their order.
std::vector<std::size_t> caches_across(const StagedModel& model, std::size_t border);

struct StageCaches {
  std::vector<bool> keeps, owns;  // by cache
};
// `caches`: of all layers; a layer may have several (LongCat attends twice a layer).
StageCaches caches_of_stage(const StagedModel& model, std::size_t caches, const IndexRange& layers);

}  // namespace assay
