// `assay run --cache-dir`: texts by the serving engine, before blocks on disk that earlier runs left.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "refimpl/block_store/tiers.h"
#include "refimpl/engine/engine.h"
#include "refimpl/engine/serving.h"
#include "refimpl/run_arrivals.h"
#include "refimpl/run_model.h"
#include "refimpl/run_settings.h"

namespace assay {

struct ServedTexts {
  std::vector<Generation> made;
  EngineTiming timing;
  ServingCounts counts;
  std::size_t from_memory = 0;  // of counts.loaded_blocks
  ArrivalTimeline arrivals;
};
// What they would be without the cache; `note` is told what becomes of it.
ServedTexts serve_texts(OpenModel& open, const RunSettings& settings,
                        const std::vector<GenerationRequest>& requests, const TextEngine::Listener& listener,
                        const std::function<void(const std::string&)>& note);

// Of --cache-dir and what goes with it.
TierOptions tier_options(const RunSettings& settings, const BlockFolder::Told& told);

// Whatever the numbers in a cache depend on beside tokens: the files' digests, precision, kernels, forms.
std::string run_identity(const OpenModel& open, const RunSettings& settings);

}  // namespace assay
