// Multi-token prediction layers: which tensors are theirs, and what config.json says of them.
#pragma once

#include "convert/plan.h"
#include "core/system/report.h"

namespace assay {

// Leaves in ConversionPlan::stored what is asked for. A tensor is the prediction layers' when its layer's
// number is num_hidden_layers or more (DeepSeek V3, GLM-4.5), or a part of its name is "mtp" (Qwen3-Next,
// MiMo). Adds convert.no_mtp where there are none, and convert.no_layer_count where the config has no number
// of layers.
void select_mtp(ConversionPlan& plan, Mtp mtp);

// --drop-mtp: num_nextn_predict_layers and its like become 0.
void drop_mtp_from_config(Json& config);

}  // namespace assay
