// Configs of draft models that vLLM's speculators library writes: what a draft is stands at the document's top, and its layers'
// sizes in transformer_layer_config. Source: speculators 0.9, config.py; vLLM 0.33, configs/speculators/algos.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/model/config.h"

namespace assay::families {

// One object of both, in the keys of the drafts' own authors; the config itself where it has no such section.
ModelConfig flat_draft(const ModelConfig& config);
// How many entries a list has; nullopt: there is no such list, or an empty one.
std::optional<std::uint64_t> entries_of(const ModelConfig& config, std::string_view key);

}  // namespace assay::families
