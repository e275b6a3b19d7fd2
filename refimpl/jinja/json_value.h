// JSON as a template's values, as Python's json reads it: keys in their order, whole numbers of any size.
#pragma once

#include <string_view>

#include "refimpl/jinja/value.h"

namespace assay::jinja {

// Throws Error::input with a byte where the text is no JSON, or deeper than 100 levels. Of a key that is there twice
// the last value holds.
Value value_from_json(std::string_view text);

}  // namespace assay::jinja
