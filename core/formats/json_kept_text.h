// Of an object of many thousand members a document takes thirty times as long as whoever reads it event by event
// (json_events.h): a document without it, then, that has its text.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/formats/json.h"

namespace assay {

// As parse_json, and where a member named `kept`, wherever it stands, is an object, the document has its text (a string)
// in its place.
ParsedJson parse_json_keeping(std::string_view kept, std::string_view text, const std::filesystem::path& source,
                              const JsonLimits& limits = {});

}  // namespace assay
