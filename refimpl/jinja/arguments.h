// What a call was given, against what it takes.
#pragma once

#include <initializer_list>
#include <string_view>

#include "refimpl/jinja/value.h"

namespace assay::jinja {

// In the order of `names`; missing where nothing was given. Error for too many, too few, and unknown names.
Values bind(std::string_view callee, const Arguments& arguments,
            std::initializer_list<std::string_view> names, std::size_t required);
// Of functions that take no names.
const Values& positional(std::string_view callee, const Arguments& arguments, std::size_t least,
                         std::size_t most);

std::int64_t whole_argument(const Value& value);
const std::string& text_argument(std::string_view callee, const Value& value);
inline bool flag(const Value& value) {
  return !value.is_missing() && truth(value);
}
// soft_str: strings as they are, Markup among them.
Value as_text_value(const Value& value);

}  // namespace assay::jinja
