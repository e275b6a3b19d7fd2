// Matrices that lie plain in a checkpoint whose config has them quantized. Releases leave many so: routers, heads,
// towers, what a tool thought too small. Only one whose like is quantized in other layers, under a config that means
// every Linear but those it lists, is what no engine loads: it looks for codes there.
#pragma once

#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/config.h"
#include "core/system/finding.h"

namespace assay {

// Whether engines expect codes wherever the config does not exempt a module. Of GPTQ and AWQ they look at the headers,
// and of several algorithms each names its modules.
bool quantizes_every_linear(const QuantizationConfig& config);

// Of these tensors those that the list of exempt modules does not name, under any of the names that engines have for
// them, as one finding (model.plain_undeclared). Throws Error::input for a pattern that is none.
Findings plain_though_named(const std::vector<const CheckpointTensor*>& plain,
                            const QuantizationConfig& config);

}  // namespace assay
