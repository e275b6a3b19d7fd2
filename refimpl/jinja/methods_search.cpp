// The methods of strings that look into them or take them apart.
#include <fmt/format.h>

#include <algorithm>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/methods.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

// The part of a string that `start` and `end`, in characters, say; nullopt where start lies behind the end.
struct Part {
  std::string_view bytes;
  std::size_t first = 0;  // its first character
};
std::optional<Part> part(const Value& self, const Values& given) {
  const Text& whole = self.as_text();
  const auto size = static_cast<std::int64_t>(whole.length);
  const auto bound = [&](std::size_t which, std::int64_t otherwise) {
    if (given.size() <= which || given[which].is_none()) return otherwise;
    const std::int64_t at = whole_argument(given[which]);
    return at < 0 ? std::max<std::int64_t>(at + size, 0) : at;
  };
  const std::int64_t start = bound(1, 0), end = std::min(bound(2, size), size);
  if (start > end) return std::nullopt;
  const auto first = static_cast<std::size_t>(start), last = static_cast<std::size_t>(end);
  const auto byte = [&](std::size_t at) { return whole.ascii() ? at : byte_of_character(whole.utf8, at); };
  const std::size_t begin = byte(first);
  return Part{std::string_view(whole.utf8).substr(begin, byte(last) - begin), first};
}

enum class Search { find, rfind };
std::optional<std::int64_t> search(Search way, const Value& self, const Arguments& arguments) {
  const Values& given = positional("find", arguments, 1, 3);
  const std::string& wanted = text_argument("find", given[0]);
  const auto where = part(self, given);
  if (!where) return std::nullopt;
  count_copy(where->bytes.size());
  const std::size_t at = way == Search::find ? where->bytes.find(wanted) : where->bytes.rfind(wanted);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<std::int64_t>(where->first + count_characters(where->bytes.substr(0, at)));
}

template <Search way>
Value find(Session&, const Value& self, const Arguments& arguments) {
  return Value::of_integer(search(way, self, arguments).value_or(-1));
}

template <Search way>
Value index(Session&, const Value& self, const Arguments& arguments) {
  const auto found = search(way, self, arguments);
  if (!found) fail("substring not found");
  return Value::of_integer(*found);
}

Value count(Session&, const Value& self, const Arguments& arguments) {
  const Values& given = positional("count", arguments, 1, 3);
  const std::string& wanted = text_argument("count", given[0]);
  const auto where = part(self, given);
  if (!where) return Value::of_integer(0);
  if (wanted.empty()) return Value::of_integer(static_cast<std::int64_t>(count_characters(where->bytes)) + 1);
  std::int64_t found = 0;
  count_copy(where->bytes.size());
  for (std::size_t at = where->bytes.find(wanted); at != std::string_view::npos;
       at = where->bytes.find(wanted, at + wanted.size()))
    ++found;
  return Value::of_integer(found);
}

template <bool at_start>
Value starts_or_ends(Session&, const Value& self, const Arguments& arguments) {
  const Values& given = positional(at_start ? "startswith" : "endswith", arguments, 1, 3);
  const auto where = part(self, given);
  const auto fits = [&](const Value& wanted) {
    const std::string& affix = text_argument("startswith and endswith", wanted);
    return where && (at_start ? where->bytes.starts_with(affix) : where->bytes.ends_with(affix));
  };
  if (!given[0].is(Type::tuple)) return Value::of_bool(fits(given[0]));
  for (const Value& each : given[0].items()) {
    if (fits(each)) return Value::of_bool(true);
  }
  return Value::of_bool(false);
}

// ---- taking apart

Value texts(const std::vector<std::string_view>& parts, bool safe) {
  Values values;
  values.reserve(parts.size());
  for (const std::string_view each : parts) values.push_back(text(std::string(each), safe));
  return list(std::move(values));
}

std::vector<std::string_view> split_at(std::string_view rest, std::string_view separator, std::int64_t most) {
  std::vector<std::string_view> parts;
  count_copy(rest.size());
  while (most-- != 0) {
    const std::size_t at = rest.find(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(rest.substr(0, at));
    rest.remove_prefix(at + separator.size());
  }
  parts.push_back(rest);
  return parts;
}

std::vector<std::string_view> split_from_right(std::string_view rest, std::string_view separator,
                                               std::int64_t most) {
  std::vector<std::string_view> parts;
  count_copy(rest.size());
  while (most-- != 0) {
    const std::size_t at = rest.rfind(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(rest.substr(at + separator.size()));
    rest = rest.substr(0, at);
  }
  parts.push_back(rest);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool from_left>
Value split(Session&, const Value& self, const Arguments& arguments) {
  const Values bound = bind("split", arguments, {"sep", "maxsplit"}, 0);
  const std::int64_t most = bound[1].is_missing() ? -1 : whole_argument(bound[1]);
  const std::string_view whole = self.str();
  if (bound[0].is_missing() || bound[0].is_none())
    return texts(from_left ? split_words(whole, most) : split_words_from_right(whole, most), is_safe(self));
  const std::string& separator = text_argument("split", bound[0]);
  if (separator.empty()) fail("empty separator");
  return texts(from_left ? split_at(whole, separator, most) : split_from_right(whole, separator, most),
               is_safe(self));
}

Value splitlines(Session&, const Value& self, const Arguments& arguments) {
  const Values bound = bind("splitlines", arguments, {"keepends"}, 0);
  const bool keeps_ends =
      !bound[0].is_missing() && whole_argument(bound[0]) != 0;  // Python asks for an integer
  return texts(split_lines(self.str(), keeps_ends), is_safe(self));
}

template <bool from_left>
Value partition(Session&, const Value& self, const Arguments& arguments) {
  const std::string& separator = text_argument("partition", positional("partition", arguments, 1, 1)[0]);
  if (separator.empty()) fail("empty separator");
  const std::string& whole = self.str();
  const std::size_t at = from_left ? whole.find(separator) : whole.rfind(separator);
  const bool safe = is_safe(self);
  if (at == std::string::npos) {
    const Value nothing = text("", safe);
    return from_left ? tuple({self, nothing, nothing}) : tuple({nothing, nothing, self});
  }
  return tuple({text(whole.substr(0, at), safe), text(separator, safe),
                text(whole.substr(at + separator.size()), safe)});
}

// ---- what kind of characters

template <bool (*is)(char32_t)>
Value all_are(Session&, const Value& self, const Arguments& arguments) {
  positional("a string's method", arguments, 0, 0);
  const std::string& whole = self.str();
  count_copy(whole.size());
  for (std::size_t at = 0; at < whole.size();) {
    if (!is(next_character(whole, at))) return Value::of_bool(false);
  }
  return Value::of_bool(!whole.empty() || is == &is_printable);
}

bool is_alphanumeric(char32_t c) {
  return is_alphabetic(c) || is_numeric(c) || is_digit(c);
}

Value isascii(Session&, const Value& self, const Arguments& arguments) {
  positional("isascii", arguments, 0, 0);
  return Value::of_bool(self.as_text().ascii());
}

Value isidentifier(Session&, const Value& self, const Arguments& arguments) {
  positional("isidentifier", arguments, 0, 0);
  const std::string& whole = self.str();
  for (std::size_t at = 0; at < whole.size();) {
    const bool first = at == 0;
    const char32_t c = next_character(whole, at);
    if (!(first ? is_identifier_start(c) : is_identifier_part(c))) return Value::of_bool(false);
  }
  return Value::of_bool(!whole.empty());
}

// Capitals after characters without case, and small letters after those with.
Value istitle(Session&, const Value& self, const Arguments& arguments) {
  positional("istitle", arguments, 0, 0);
  bool cased = false, inside = false;
  const std::string& whole = self.str();
  for (std::size_t at = 0; at < whole.size();) {
    const char32_t c = next_character(whole, at);
    const bool capital = is_upper(c) || is_titlecase(c), small = is_lower(c);
    if ((capital && inside) || (small && !inside)) return Value::of_bool(false);
    inside = capital || small;
    cased = cased || inside;
  }
  return Value::of_bool(cased);
}

template <bool wants_lower>
Value has_case(Session&, const Value& self, const Arguments& arguments) {
  positional("islower and isupper", arguments, 0, 0);
  return Value::of_bool(is_all_of_case(self.str(), wants_lower));
}

constexpr std::pair<std::string_view, Method> kSearchMethods[] = {
    {"count", &count},
    {"endswith", &starts_or_ends<false>},
    {"find", &find<Search::find>},
    {"index", &index<Search::find>},
    {"isalnum", &all_are<is_alphanumeric>},
    {"isalpha", &all_are<is_alphabetic>},
    {"isascii", &isascii},
    {"isdecimal", &all_are<is_decimal>},
    {"isdigit", &all_are<is_digit>},
    {"isidentifier", &isidentifier},
    {"islower", &has_case<true>},
    {"isnumeric", &all_are<is_numeric>},
    {"isprintable", &all_are<is_printable>},
    {"isspace", &all_are<is_space>},
    {"istitle", &istitle},
    {"isupper", &has_case<false>},
    {"partition", &partition<true>},
    {"rfind", &find<Search::rfind>},
    {"rindex", &index<Search::rfind>},
    {"rpartition", &partition<false>},
    {"rsplit", &split<false>},
    {"split", &split<true>},
    {"splitlines", &splitlines},
    {"startswith", &starts_or_ends<true>},
};

}  // namespace

bool is_all_of_case(std::string_view whole, bool lower) {
  bool cased = false;
  count_copy(whole.size());
  for (std::size_t at = 0; at < whole.size();) {
    const char32_t c = next_character(whole, at);
    if (is_titlecase(c) || (lower ? is_upper(c) : is_lower(c))) return false;
    cased = cased || (lower ? is_lower(c) : is_upper(c));
  }
  return cased;
}

Method text_search_method(std::string_view name) {
  for (const auto& [known, method] : kSearchMethods) {
    if (known == name) return method;
  }
  return nullptr;
}

}  // namespace assay::jinja
