// How Kolibri 1 chooses experts: by logits and a correction, whose sigmoids are then the weights of those chosen.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay {

// The correction may be absent. Of `rule`: top_k, renormalize, scale.
Routing logit_choice(const Matrix& logits, const WeightView& correction, const GateRule& rule, Ops& ops);

}  // namespace assay
