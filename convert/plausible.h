// Weights whose scales were lost: raw codes taken for values show as an amax of 448 (127 of INT8), which no
// trained matrix comes near.
#pragma once

#include "convert/plan.h"

namespace assay {

// Throws Error::refused where `amax`, of values decoded from a quantized `source`, is that large and
// --allow-large was not given.
void check_plausible(const LogicalTensor& source, float amax, const ConvertOptions& options);

}  // namespace assay
