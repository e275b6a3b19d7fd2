// A config names its model twice: the class in `architectures`, by which engines go, and `model_type`, by which
// transformers finds the configuration and what AutoModel loads. Where the two are of different families, one of them
// loads the weights as another model.
#pragma once

#include <optional>

#include "core/model/config.h"
#include "core/system/finding.h"

namespace assay {

// model.type_differs. Nothing where the config brings code of its own (auto_map), or where a name is not known here.
std::optional<Finding> class_unlike_type(const ModelConfig& config);

}  // namespace assay
