// {{ value is test(arguments) }}
#pragma once

#include <string_view>

#include "refimpl/jinja/value.h"

namespace assay::jinja {

bool is_test(std::string_view name);
// Error where there is none of that name.
bool call_test(Session& session, std::string_view name, const Value& subject, const Arguments& arguments);
// a >= b and its kin; `less` is a < b.
bool less_or_equal(const Value& a, const Value& b);

}  // namespace assay::jinja
