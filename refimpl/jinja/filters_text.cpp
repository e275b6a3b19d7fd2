// Filters that write text.
#include <fmt/format.h>

#include <algorithm>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/filters.h"
#include "refimpl/jinja/format.h"
#include "refimpl/jinja/methods.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

// Words begin behind blanks, hyphens and opening brackets; a separator is a word of its own.
std::string title_of(std::string_view utf8) {
  const auto separates = [](char32_t c) {
    return is_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
  };
  std::string title;
  for (std::size_t begin = 0; begin < utf8.size();) {
    std::size_t end = begin;
    const bool separator = separates(next_character(utf8, end));
    const std::size_t second = end;
    while (end < utf8.size()) {
      std::size_t at = end;
      if (separates(next_character(utf8, at)) != separator) break;
      end = at;
    }
    title += to_upper(utf8.substr(begin, second - begin));
    title += to_lower(utf8.substr(second, end - second));
    begin = end;
  }
  return title;
}

template <std::string (*change)(std::string_view)>
Value change_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("a filter of text", arguments, {}, 0);
  const Value source = as_text_value(subject);
  return text(change(source.str()), is_safe(source) && change != &title_of);
}

Value call_method(Session& session, const Value& of, std::string_view name, Values positional) {
  Arguments arguments{std::move(positional), {}};
  return text_method(name)(session, of, arguments);
}

Value center_filter(Session& session, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("center", arguments, {"width"}, 0);
  return call_method(session, as_text_value(subject), "center",
                     {bound[0].is_missing() ? Value::of_integer(80) : bound[0]});
}

Value trim_filter(Session& session, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("trim", arguments, {"chars"}, 0);
  return call_method(session, as_text_value(subject), "strip",
                     {bound[0].is_missing() ? Value::none() : bound[0]});
}

Value string_filter(Session&, const Value& subject, const Arguments& arguments) {
  positional("string", arguments, 0, 0);
  return as_text_value(subject);
}

Value format_filter(Session&, const Value& subject, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    fail("format: can't handle positional and keyword arguments at the same time");
  const Value format = as_text_value(subject);
  if (arguments.named.empty()) return percent_format(format, tuple(arguments.positional));
  Dict::Entries entries;
  for (const auto& [name, value] : arguments.named) entries.emplace_back(text(name), value);
  return percent_format(format, dict(std::move(entries)));
}

Value replace_filter(Session& session, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("replace", arguments, {"old", "new", "count"}, 2);
  const bool all = bound[2].is_missing() || bound[2].is_none();
  const std::int64_t most = all ? -1 : whole_argument(bound[2]);
  if (!session.autoescape) return text(replaced(write(subject), write(bound[0]), write(bound[1]), most));
  const bool escapes = is_safe(bound[0]) || (is_safe(bound[1]) && !is_safe(subject));
  const Value source =
      escapes && !is_safe(subject) ? safe_text(escaped_for_html(write(subject))) : as_text_value(subject);
  return call_method(session, source, "replace",
                     {as_text_value(bound[0]), as_text_value(bound[1]), Value::of_integer(most)});
}

// All lines but the first and the empty ones, unless asked for.
Value indent_filter(Session&, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("indent", arguments, {"width", "first", "blank"}, 0);
  std::string indention = "    ";
  if (bound[0].is_text()) {
    indention = bound[0].str();
  } else if (!bound[0].is_missing()) {
    const std::int64_t width = std::max<std::int64_t>(whole_argument(bound[0]), 0);
    Session::current()->check_text(static_cast<std::size_t>(width));
    indention = std::string(static_cast<std::size_t>(width), ' ');
  }
  if (subject.is_undefined()) fail(static_cast<const Undefined*>(subject.object())->message);
  const std::string source = text_argument("indent", subject) + "\n";
  const bool blank = flag(bound[2]);
  Buffer out;
  bool first = true;
  for (const std::string_view line : split_lines(source, false)) {
    if (!first) out.append("\n");
    if (first ? flag(bound[1]) : blank || !line.empty()) out.append(indention);
    out.append(line);
    first = false;
  }
  return text(out.take(), is_safe(subject));
}

Value truncate_filter(Session& session, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("truncate", arguments, {"length", "killwords", "end", "leeway"}, 0);
  const std::int64_t most = bound[0].is_missing() ? 255 : whole_argument(bound[0]);
  const Value end = bound[2].is_missing() ? text("...") : bound[2];
  const std::int64_t leeway = bound[3].is_missing() || bound[3].is_none() ? 5 : whole_argument(bound[3]);
  const auto size = length(subject), end_size = length(end);
  if (!size || !end_size) fail("truncate: a text is wanted");
  const auto end_length = static_cast<std::int64_t>(*end_size);
  if (most < end_length) fail(fmt::format("truncate: expected length >= {}, got {}", end_length, most));
  if (leeway < 0) fail(fmt::format("truncate: expected leeway >= 0, got {}", leeway));
  if (static_cast<std::int64_t>(*size) <= most + leeway) return subject;
  Value head = slice(subject, Value::none(), Value::of_integer(most - end_length), Value::none());
  if (!flag(bound[1])) {
    text_argument("truncate", head);
    head = call_method(session, head, "rsplit", {text(" "), Value::of_integer(1)}).items().front();
  }
  return compute(Operator::add, head, end);
}

Value wordcount_filter(Session&, const Value& subject, const Arguments& arguments) {
  bind("wordcount", arguments, {}, 0);
  const std::string source = write(subject);
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < source.size();) {
    const bool word = is_word(next_character(source, at));
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::of_integer(words);
}

Value join_filter(Session& session, const Value& subject, const Arguments& arguments) {
  const Values bound = bind("join", arguments, {"d", "attribute"}, 0);
  const AttributeGetter getter(bound[1]);
  Values items = collect(subject);
  for (Value& item : items) item = getter(item);
  Value separator = bound[0].is_missing() ? text("") : bound[0];
  if (session.autoescape) {
    const bool any_safe = std::any_of(items.begin(), items.end(), [](const Value& v) { return is_safe(v); });
    if (!is_safe(separator) && any_safe) separator = safe_text(escaped_for_html(write(separator)));
    if (is_safe(separator)) return call_method(session, separator, "join", {list(std::move(items))});
  }
  const std::string between = write(separator);
  Buffer out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out.append(between);
    out.append(write(items[i]));
  }
  return text(out.take());
}

constexpr std::pair<std::string_view, Filter> kTextFilters[] = {
    {"capitalize", &change_filter<to_capitalized>},
    {"center", &center_filter},
    {"format", &format_filter},
    {"indent", &indent_filter},
    {"join", &join_filter},
    {"lower", &change_filter<to_lower>},
    {"replace", &replace_filter},
    {"string", &string_filter},
    {"title", &change_filter<title_of>},
    {"trim", &trim_filter},
    {"truncate", &truncate_filter},
    {"upper", &change_filter<to_upper>},
    {"wordcount", &wordcount_filter},
};

}  // namespace

Filter text_filter(std::string_view name) {
  for (const auto& [known, filter] : kTextFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace assay::jinja
