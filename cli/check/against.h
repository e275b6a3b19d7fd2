// A checkpoint held against the one it was made from, by decoded values: rounding of another format is
// allowed, a fault is not.
#pragma once

#include "cli/check/stages.h"

namespace assay {

// Every tensor of PATH against the same of `settings.against`. Formats may differ: what rounding into another
// explains is told by the tensors of the same pair of formats (an error three times their median is none),
// and by the cosine, which no rounding brings below 0.9. A tensor beyond that is a finding, with how it came
// to be where that shows: another tensor's values, a transposed grid of scales, a constant factor, some
// blocks. Of the others every tile and every row is judged by those beside it (core/model/value_error.h).
Stage examine_against(const CheckSettings& settings);

}  // namespace assay
