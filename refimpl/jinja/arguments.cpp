#include "refimpl/jinja/arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::jinja {

Values bind(std::string_view callee, const Arguments& arguments,
            std::initializer_list<std::string_view> names, std::size_t required) {
  if (arguments.positional.size() > names.size())
    fail(fmt::format("{}() takes {} arguments but {} were given", callee, names.size(),
                     arguments.positional.size()));
  Values bound(names.size());
  std::copy(arguments.positional.begin(), arguments.positional.end(), bound.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    if (at == static_cast<std::ptrdiff_t>(names.size()))
      fail(fmt::format("{}() got an unexpected keyword argument '{}'", callee, name));
    Value& place = bound[static_cast<std::size_t>(at)];
    if (!place.is_missing()) fail(fmt::format("{}() got multiple values for argument '{}'", callee, name));
    place = value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (bound[i].is_missing())
      fail(fmt::format("{}() is missing the argument '{}'", callee, *(names.begin() + i)));
  }
  return bound;
}

const Values& positional(std::string_view callee, const Arguments& arguments, std::size_t least,
                         std::size_t most) {
  if (!arguments.named.empty()) fail(fmt::format("{}() takes no keyword arguments", callee));
  const std::size_t given = arguments.positional.size();
  if (given < least || given > most)
    fail(fmt::format("{}() takes {} to {} arguments but {} were given", callee, least, most, given));
  return arguments.positional;
}

std::int64_t whole_argument(const Value& value) {
  if (value.is_whole()) return value.whole();
  if (value.is(Type::wide)) fail("a whole number of more than 64 bits is no index or count");
  if (value.is_undefined()) fail(static_cast<const Undefined*>(value.object())->message);
  fail(fmt::format("'{}' object cannot be interpreted as an integer", type_name(value)));
}

const std::string& text_argument(std::string_view callee, const Value& value) {
  if (!value.is_text()) fail(fmt::format("{}: a string is wanted, not '{}'", callee, type_name(value)));
  return value.str();
}

Value as_text_value(const Value& value) {
  return value.is_text() ? value : text(write(value));
}

}  // namespace assay::jinja
