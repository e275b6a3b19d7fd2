// A string between quotes, as Python's unicode-escape codec reads it.
#pragma once

#include <string>
#include <string_view>

namespace assay::jinja {

// Throws Error::input with `line` for an escape that is cut short.
std::string unescape_literal(std::string_view literal, int line);

}  // namespace assay::jinja
