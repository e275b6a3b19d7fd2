// --merge: from the folders that --tp wrote (ranks.h) back to the files they were cut from.
#pragma once

#include "convert/plan.h"

namespace assay {

// A plan whose every tensor is gathered from IN's rank-NN folders. Throws Error::input where a rank is
// missing, ranks contradict each other, or together they do not hold all of a tensor.
ConversionPlan make_merge_plan(const fs::path& in, const ConvertOptions& options);

}  // namespace assay
