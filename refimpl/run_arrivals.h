// When layers of blocks on disk were read and when they were computed, of texts that began with known ones.
#pragma once

#include <string>
#include <vector>

#include "core/system/json.h"
#include "refimpl/step/layer_arrivals.h"

namespace assay {

struct ArrivalTimeline {
  std::vector<std::vector<LayerArrival>> steps;  // those that read some, by layer

  double reading() const;  // seconds
  double beside() const;   // of these, while an earlier layer was computed
  double waited() const;   // that computing waited for them
};
Json to_json(const ArrivalTimeline& timeline);
// "blocks came layer by layer: …"; empty: none came so.
std::string line_of(const ArrivalTimeline& timeline);

}  // namespace assay
