// A report whose one long list is written as it is made: the same text that dump_json() gives, without a
// document of all of it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "core/system/report.h"

namespace assay {

using WriteText = std::function<void(std::string_view)>;

// `document` is an object with an empty array under `key`; `element(i)` is its i-th element. Ends with a
// newline.
void stream_json(const Json& document, std::string_view key, std::size_t count,
                 const std::function<Json(std::size_t)>& element, const WriteText& write);

// The same, to where --json asks for it: "-" is standard output, everything else a file that appears whole.
void stream_json_to(const std::string& target, const Json& document, std::string_view key, std::size_t count,
                    const std::function<Json(std::size_t)>& element);

}  // namespace assay
