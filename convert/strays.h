// Tensors that say nothing without the quantization around them, or say that the weights are not all.
#pragma once

#include "convert/plan.h"

namespace assay {

// Where values change form: the scales of a key-value cache are left out, with a warning, for config.json no
// longer tells of them; adapters (LoRA pairs) that are not merged are an error, for the weights without them
// are another model. `copy` and `reblock` leave both as they are.
void leave_out_strays(ConversionPlan& plan);

}  // namespace assay
