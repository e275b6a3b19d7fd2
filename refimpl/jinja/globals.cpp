// The functions that every template can name.
#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/things.h"

namespace assay::jinja {
namespace {

constexpr std::size_t kLongestRange = 100'000;  // jinja2.sandbox.MAX_RANGE

Value range_function(Session&, Arguments& arguments) {
  const Values& given = positional("range", arguments, 1, 3);
  const std::int64_t first = whole_argument(given[0]);
  const std::int64_t start = given.size() == 1 ? 0 : first;
  const std::int64_t stop = given.size() == 1 ? first : whole_argument(given[1]);
  const std::int64_t step = given.size() == 3 ? whole_argument(given[2]) : 1;
  if (step == 0) fail("range() arg 3 must not be zero");
  if (step == INT64_MIN) fail("range() with a step that has no opposite");
  Value made = make<Range>(start, stop, step);
  if (*length(made) > kLongestRange)
    fail(fmt::format("a range of {} numbers, and {} are the most", *length(made), kLongestRange));
  return made;
}

Value dict_function(Session&, Arguments& arguments) {
  return dict(dict_entries("dict", arguments));
}

// As transformers has it: nothing that begins with an underscore can be kept in one.
Value namespace_function(Session& session, Arguments& arguments) {
  Dict::Entries entries = dict(dict_entries("namespace", arguments)).as_dict().entries;
  for (const auto& [name, value] : entries) {
    if (name.is_text() && name.str().starts_with('_'))
      fail(fmt::format("a namespace cannot hold the name '{}', which begins with an underscore", name.str()));
  }
  return make_namespace(session, std::move(entries));
}

Value cycler_function(Session&, Arguments& arguments) {
  if (!arguments.named.empty()) fail("cycler() takes no keyword arguments");
  if (arguments.positional.empty()) fail("cycler() wants at least one item");
  return make<Cycler>(std::move(arguments.positional));
}

Value joiner_function(Session&, Arguments& arguments) {
  const Values bound = bind("joiner", arguments, {"sep"}, 0);
  return make<Joiner>(bound[0].is_missing() ? text(", ") : bound[0]);
}

// What a template says when it will not have the conversation.
Value raise_exception(Session&, Arguments& arguments) {
  const Values bound = bind("raise_exception", arguments, {"message"}, 1);
  fail("the template refuses: " + escape_for_terminal(write(bound[0])));
}

Value strftime_now(Session& session, Arguments& arguments) {
  const Values bound = bind("strftime_now", arguments, {"format"}, 1);
  return text(format_moment(session.now, text_argument("strftime_now", bound[0])));
}

Value lipsum(Session&, Arguments&) {
  fail("lipsum() writes random text, which no prompt can want");
}

}  // namespace

Dict::Entries dict_entries(std::string_view callee, const Arguments& arguments) {
  Dict::Entries entries;
  if (arguments.positional.size() > 1)
    fail(fmt::format("{}() takes at most one positional argument", callee));
  for (const Value& from : arguments.positional) {
    if (from.is_undefined()) fail(static_cast<const Undefined*>(from.object())->message);
    if (from.is_dict()) {
      entries = from.as_dict().entries;
      continue;
    }
    for (const Value& pair : collect(from)) {
      Values both = collect(pair);
      if (both.size() != 2) fail(fmt::format("{}() wants pairs, and one has {} items", callee, both.size()));
      entries.emplace_back(std::move(both[0]), std::move(both[1]));
    }
  }
  for (const auto& [name, value] : arguments.named) entries.emplace_back(text(name), value);
  return entries;
}

std::optional<Value> GlobalFunction::attribute(std::string_view name) const {
  if (name_ != "dict" || name != "fromkeys") return std::nullopt;
  return make<GlobalFunction>("fromkeys", [](Session&, Arguments& arguments) {
    const Values& given = positional("fromkeys", arguments, 1, 2);
    Dict::Entries entries;
    for (Value& key : collect(given[0]))
      entries.emplace_back(std::move(key), given.size() > 1 ? given[1] : Value::none());
    return dict(std::move(entries));
  });
}

Dict::Entries global_functions() {
  static constexpr std::pair<std::string_view, FunctionOf> kFunctions[] = {
      {"range", &range_function},
      {"dict", &dict_function},
      {"lipsum", &lipsum},
      {"cycler", &cycler_function},
      {"joiner", &joiner_function},
      {"namespace", &namespace_function},
      {"raise_exception", &raise_exception},
      {"strftime_now", &strftime_now}};
  Dict::Entries entries;
  for (const auto& [name, function] : kFunctions)
    entries.emplace_back(text(std::string(name)), make<GlobalFunction>(name, function));
  return entries;
}

}  // namespace assay::jinja
