// Fields of signatures' JSON documents, of the kind they have to be; where not, an Error that names the field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/formats/json.h"

namespace assay::signature {

// nullptr where it is absent or null.
const ParsedJson* field(const ParsedJson& object, std::string_view name);
const ParsedJson& object_in(const ParsedJson& object, std::string_view name);
const ParsedJson& array_in(const ParsedJson& object, std::string_view name);
const std::string& text_in(const ParsedJson& object, std::string_view name);
// Base64, decoded.
std::string bytes_in(const ParsedJson& object, std::string_view name);
// Not negative; as protobuf's JSON has it, a number or a string of digits.
std::int64_t count_in(const ParsedJson& object, std::string_view name);

}  // namespace assay::signature
