// The methods of strings that change them. Of a Markup they give a Markup, and escape what they are given.
#include <fmt/format.h>

#include <algorithm>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/format.h"
#include "refimpl/jinja/methods.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

template <std::string (*change)(std::string_view)>
Value changed(Session&, const Value& self, const Arguments& arguments) {
  positional("a string's method", arguments, 0, 0);
  return text(change(self.str()), is_safe(self));
}

// A Markup escapes what is put into it.
std::string inserted(const Value& self, const Value& part) {
  const std::string& utf8 = text_argument("a string's method", part);
  return is_safe(self) && !is_safe(part) ? escaped_for_html(utf8) : utf8;
}

template <Side side>
Value strip_method(Session&, const Value& self, const Arguments& arguments) {
  const Values& given = positional("strip", arguments, 0, 1);
  std::optional<std::string_view> characters;
  if (!given.empty() && !given[0].is_none()) characters = text_argument("strip", given[0]);
  return text(std::string(stripped(self.str(), side, characters)), is_safe(self));
}

// `left` and `right` copies of `fill` around the text.
Value padded(const Value& self, std::uint64_t left, std::uint64_t right, const std::string& fill) {
  const std::uint64_t bytes = (left + right) * fill.size() + self.str().size();
  Session::current()->check_text(bytes);
  std::string out;
  for (std::uint64_t i = 0; i < left; ++i) out += fill;
  out += self.str();
  for (std::uint64_t i = 0; i < right; ++i) out += fill;
  return text(std::move(out), is_safe(self));
}

enum class Justify { left, right, center };
template <Justify where>
Value justified(Session&, const Value& self, const Arguments& arguments) {
  const Values& given = positional("a string's method", arguments, 1, 2);
  const std::int64_t width = whole_argument(given[0]);
  const std::string fill = given.size() > 1 ? inserted(self, given[1]) : " ";
  if (count_characters(fill) != 1) fail("the fill character must be exactly one character long");
  const auto size = static_cast<std::int64_t>(self.as_text().length);
  if (width <= size) return self;
  const auto missing = static_cast<std::uint64_t>(width - size);
  Session::current()->check_text(missing);
  if (where == Justify::left) return padded(self, 0, missing, fill);
  if (where == Justify::right) return padded(self, missing, 0, fill);
  return padded(self, missing / 2 + (missing & static_cast<std::uint64_t>(width) & 1),
                missing - (missing / 2 + (missing & static_cast<std::uint64_t>(width) & 1)), fill);
}

Value zfill(Session&, const Value& self, const Arguments& arguments) {
  const std::int64_t width = whole_argument(positional("zfill", arguments, 1, 1)[0]);
  const auto size = static_cast<std::int64_t>(self.as_text().length);
  if (width <= size) return self;
  Session::current()->check_text(static_cast<std::uint64_t>(width - size));
  const std::string zeros(static_cast<std::size_t>(width - size), '0');
  const bool sign = self.str().starts_with('+') || self.str().starts_with('-');
  return text(self.str().substr(0, sign ? 1 : 0) + zeros + self.str().substr(sign ? 1 : 0), is_safe(self));
}

Value expandtabs(Session&, const Value& self, const Arguments& arguments) {
  const Values bound = bind("expandtabs", arguments, {"tabsize"}, 0);
  const std::int64_t size = bound[0].is_missing() ? 8 : whole_argument(bound[0]);
  Buffer out;
  std::int64_t column = 0;
  for (const char c : self.str()) {
    if (c == '\t') {
      const std::int64_t blanks = size > 0 ? size - column % size : 0;
      Session::current()->check_text(static_cast<std::uint64_t>(blanks));
      out.append(std::string(static_cast<std::size_t>(blanks), ' '));
      column += blanks;
      continue;
    }
    out.append(std::string_view(&c, 1));
    if ((c & 0xC0) != 0x80) column = c == '\n' || c == '\r' ? 0 : column + 1;
  }
  return text(out.take(), is_safe(self));
}

Value replace(Session&, const Value& self, const Arguments& arguments) {
  const Values& given = positional("replace", arguments, 2, 3);
  const std::string& old = text_argument("replace", given[0]);
  const std::int64_t most = given.size() > 2 ? whole_argument(given[2]) : -1;
  return text(replaced(self.str(), old, inserted(self, given[1]), most), is_safe(self));
}

Value join(Session&, const Value& self, const Arguments& arguments) {
  const Value& all = positional("join", arguments, 1, 1)[0];
  Buffer out;
  bool first = true;
  for (const Value& item : collect(all)) {
    if (!first) out.append(self.str());
    first = false;
    if (is_safe(self)) {
      out.append(is_safe(item) ? item.str() : escaped_for_html(write(item)));
    } else {
      out.append(text_argument("join", item));
    }
  }
  return text(out.take(), is_safe(self));
}

Value removeprefix(Session&, const Value& self, const Arguments& arguments) {
  const std::string& prefix = text_argument("removeprefix", positional("removeprefix", arguments, 1, 1)[0]);
  return self.str().starts_with(prefix) ? text(self.str().substr(prefix.size()), is_safe(self)) : self;
}

Value removesuffix(Session&, const Value& self, const Arguments& arguments) {
  const std::string& suffix = text_argument("removesuffix", positional("removesuffix", arguments, 1, 1)[0]);
  if (suffix.empty() || !self.str().ends_with(suffix)) return self;
  return text(self.str().substr(0, self.str().size() - suffix.size()), is_safe(self));
}

Value format_method(Session& session, const Value& self, const Arguments& arguments) {
  return brace_format(session, self, arguments.positional, arguments.named, nullptr);
}

Value format_map(Session& session, const Value& self, const Arguments& arguments) {
  const Values& given = positional("format_map", arguments, 1, 1);
  return brace_format(session, self, {}, {}, &given[0]);
}

Value unsupported_method(Session&, const Value&, const Arguments&) {
  fail("encode(), maketrans() and translate() of strings are not supported");
}

constexpr std::pair<std::string_view, Method> kMethods[] = {
    {"capitalize", &changed<to_capitalized>},
    {"casefold", &changed<case_folded>},
    {"center", &justified<Justify::center>},
    {"encode", &unsupported_method},
    {"expandtabs", &expandtabs},
    {"format", &format_method},
    {"format_map", &format_map},
    {"join", &join},
    {"ljust", &justified<Justify::left>},
    {"lower", &changed<to_lower>},
    {"lstrip", &strip_method<Side::left>},
    {"maketrans", &unsupported_method},
    {"removeprefix", &removeprefix},
    {"removesuffix", &removesuffix},
    {"replace", &replace},
    {"rjust", &justified<Justify::right>},
    {"rstrip", &strip_method<Side::right>},
    {"strip", &strip_method<Side::both>},
    {"swapcase", &changed<swapped_case>},
    {"title", &changed<to_title>},
    {"translate", &unsupported_method},
    {"upper", &changed<to_upper>},
    {"zfill", &zfill},
};

}  // namespace

Method text_method(std::string_view name) {
  for (const auto& [known, method] : kMethods) {
    if (known == name) return method;
  }
  return text_search_method(name);
}

}  // namespace assay::jinja
