// Where every tensor lies in the files to be written: order, offsets, headers, sizes.
#pragma once

#include "convert/plan.h"

namespace assay {

// Takes ConversionPlan::shards with the tensors that belong in each, in any order, and settles the rest:
// shards without tensors are dropped, the others laid out as the reference writer would, and the totals
// summed.
void lay_out(ConversionPlan& plan, int jobs);

// The totals alone, of shards that are laid out.
void sum_up(ConversionPlan& plan);

}  // namespace assay
