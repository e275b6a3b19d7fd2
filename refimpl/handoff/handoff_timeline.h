// When each layer was computed and when its rows went, in seconds since the prefill began.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/system/report.h"

namespace assay {

struct TimeSpan {
  double from = 0, to = 0;
  double seconds() const { return to - from; }
};

struct LayerTime {
  std::size_t layer = 0, first = 0, rows = 0;  // of the model's caches, tokens of the prompt
  TimeSpan computed, sent;
  std::uint64_t bytes = 0;  // that went, headers included
};

struct HandoffTimeline {
  std::vector<LayerTime> layers;
  double computing() const;
  double sending() const;
  // Of sending(): while some layer was computed.
  double overlapped() const;
};

Json to_json(const HandoffTimeline& timeline);
// A table with a line a layer, and what of it lies beside computing; no more than `most_lines` of them.
std::string render(const HandoffTimeline& timeline, std::size_t most_lines);

}  // namespace assay
