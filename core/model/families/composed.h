// What models that are put together of others share: a part that is a family of its own, described below a name.
#pragma once

#include <string>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

// What a part is for, which tells its class: what reads, what reads words alone (a T5's encoder), what writes.
enum class Half { encoder, text_encoder, decoder };

// The object `key` of the config, as its model_type's family describes it, with its names behind `path` ("": the key itself).
ModuleTree describe_half(ConfigReader& config, ModuleTree& whole, const std::string& key, Half half,
                         const std::string& path = "");

}  // namespace assay::families
