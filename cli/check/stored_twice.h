// Weights that a checkpoint stores twice, though the model has them once: a tied head, the embedding of the
// prediction layer.
#pragma once

#include "core/system/finding.h"
#include "core/system/progress.h"
#include "paramcount/paramcount.h"

namespace assay {

// Where the two copies hold other values, loaders drop one of them: transformers overwrites a tied head with
// the embedding, engines share the main model's embedding with the prediction layer.
Findings compare_stored_twice(const Model& model, ProgressMode progress);

}  // namespace assay
