// JSON from strangers whose objects keep the order in which their members were written: vLLM says by it which of
// several candidates a prompt's token is. Bounds and errors as in core/formats/json.h; -Infinity, as Python writes it,
// is -1e308, NaN is refused.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/formats/json.h"

namespace assay {

using OrderedJson = nlohmann::ordered_json;

OrderedJson parse_ordered_json(std::string_view text, const std::filesystem::path& source,
                               const JsonLimits& limits = {});

}  // namespace assay
