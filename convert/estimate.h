// How long a conversion may take, from how fast a little of its source is read.
#pragma once

#include <optional>

#include "convert/plan.h"

namespace assay {

struct TimeEstimate {
  double bytes_per_second = 0, seconds = 0;
  std::uint64_t sample = 0;  // bytes read to find out
};

// Reads for a tenth of a second, past the page cache where the system allows that. Writing is taken to be as
// fast as reading, and computing to keep up with both: an estimate, no more. nullopt: there was nothing to
// read.
std::optional<TimeEstimate> estimate_time(const ConversionPlan& plan);

}  // namespace assay
