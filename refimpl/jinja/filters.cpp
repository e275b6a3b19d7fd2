#include "refimpl/jinja/filters.h"

#include <fmt/format.h>

#include <algorithm>

#include "refimpl/jinja/methods.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

Filter filter_named(std::string_view name) {
  if (name == "tojson") return &to_json;
  if (name == "wordwrap") return &wordwrap;
  if (name == "pprint") return &pprint;
  for (const auto family : {&text_filter, &number_filter, &sequence_filter, &order_filter, &markup_filter}) {
    if (const Filter found = family(name)) return found;
  }
  return nullptr;
}

bool is_all_digits(std::string_view part) {
  bool any = false;
  for (std::size_t at = 0; at < part.size();) {
    if (!is_digit(next_character(part, at))) return false;
    any = true;
  }
  return any;
}

}  // namespace

bool is_filter(std::string_view name) {
  return filter_named(name) != nullptr;
}

Value call_filter(Session& session, std::string_view name, const Value& subject, const Arguments& arguments) {
  const Filter filter = filter_named(name);
  if (filter == nullptr) fail(fmt::format("no filter is named '{}'", name));
  session.work(1);
  return filter(session, subject, arguments);
}

AttributeGetter::AttributeGetter(const Value& attribute, Value fallback, bool ignore_case)
    : fallback_(std::move(fallback)), ignore_case_(ignore_case) {
  if (attribute.is_missing() || attribute.is_none()) return;
  if (!attribute.is_text()) {
    parts_.push_back(attribute);
    return;
  }
  std::string_view rest = attribute.str();
  for (;;) {
    const std::size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, end);
    if (is_all_digits(part)) {
      const auto number = parse_integer(part, 10);
      if (!number) fail(fmt::format("'{}' is no number of an item", part));
      parts_.push_back(*number);
    } else {
      parts_.push_back(text(std::string(part)));
    }
    if (end == rest.size()) return;
    rest.remove_prefix(end + 1);
  }
}

Value AttributeGetter::operator()(const Value& item) const {
  Value value = item;
  for (const Value& part : parts_) {
    value = get_item(value, part);
    if (value.is_undefined() && !fallback_.is_missing() && !fallback_.is_none()) value = fallback_;
  }
  if (ignore_case_ && value.is_text()) return text(to_lower(value.str()), is_safe(value));
  return value;
}

}  // namespace assay::jinja
