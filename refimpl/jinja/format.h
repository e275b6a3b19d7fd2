// Python's two ways to put values into a text: '%s' % x, and '{}'.format(x).
#pragma once

#include <string>
#include <string_view>

#include "refimpl/jinja/value.h"

namespace assay::jinja {

// `format` is a text; `values` a tuple, a mapping for %(name)s, or one value.
Value percent_format(const Value& format, const Value& values);

// `mapping`: of format_map, in place of the names.
Value brace_format(Session& session, const Value& format, const Values& positional,
                   const std::vector<std::pair<std::string, Value>>& named, const Value* mapping);

// "-08.3f" of format(value, spec).
struct FormatSpec {
  std::string fill = " ";
  char align = 0;  // < > = ^
  char sign = '-';
  bool alternate = false, zero = false, negative_zero = false;
  std::int64_t width = -1, precision = -1;
  char grouping = 0;  // , or _
  char type = 0;
};
FormatSpec parse_format_spec(std::string_view spec);
std::string format_value(const Value& value, const FormatSpec& spec);
// The digits of a number without sign: type of b c d o x X, e E f F g G %, precision as given.
std::string format_magnitude(double magnitude, char type, std::int64_t precision, bool alternate);
std::string digits_in_base(std::uint64_t magnitude, int base, bool upper);
std::string represent_ascii(const Value& value);  // ascii(value)

}  // namespace assay::jinja
