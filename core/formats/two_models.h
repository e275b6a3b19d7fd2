// A folder that is two models: `model.safetensors` beside an index that does not name it. transformers loads that
// file, whatever index lies beside it (modeling_utils._get_resolved_checkpoint_files); vLLM and SGLang load the
// files that an index names.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/system/finding.h"

namespace assay {

inline constexpr std::string_view kWholeModel = "model.safetensors";
inline constexpr std::string_view kTwoModels = "index.two_models";

// What to say there, a warning.
Finding two_models(std::string_view index_name, std::size_t shards);

}  // namespace assay
