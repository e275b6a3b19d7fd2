#include "refimpl/jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/text.h"
#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

struct NamedMethod {
  std::string_view name;
  Method method;
};

// ---- lists, tuples and ranges

Value count_of_items(Session&, const Value& self, const Arguments& arguments) {
  const Value& wanted = positional("count", arguments, 1, 1)[0];
  std::int64_t count = 0;
  for (const Value& item : collect(self)) count += same(item, wanted) || equal(item, wanted) ? 1 : 0;
  return Value::of_integer(count);
}

Value index_of_item(Session&, const Value& self, const Arguments& arguments) {
  const Values& given = positional("index", arguments, 1, 3);
  const Values items = collect(self);
  const auto size = static_cast<std::int64_t>(items.size());
  const auto bound = [&](std::size_t which, std::int64_t otherwise) {
    if (given.size() <= which) return otherwise;
    const std::int64_t at = whole_argument(given[which]);
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  for (std::int64_t i = bound(1, 0), end = bound(2, size); i < end; ++i) {
    const Value& item = items[static_cast<std::size_t>(i)];
    if (same(item, given[0]) || equal(item, given[0])) return Value::of_integer(i);
  }
  fail(fmt::format("the value is not in the {}", type_name(self)));
}

Value copy_of(Session&, const Value& self, const Arguments& arguments) {
  positional("copy", arguments, 0, 0);
  return self.is_dict() ? dict(self.as_dict().entries) : list(self.items());
}

// ---- dicts

Value dict_get(Session&, const Value& self, const Arguments& arguments) {
  const Values& given = positional("get", arguments, 1, 2);
  const Value* found = self.as_dict().find(given[0]);
  return found != nullptr ? *found : given.size() > 1 ? given[1] : Value::none();
}

template <DictView::Kind kind>
Value dict_view(Session&, const Value& self, const Arguments& arguments) {
  positional("a dict's method", arguments, 0, 0);
  return make<DictView>(self, kind);
}

Value dict_fromkeys(Session&, const Value&, const Arguments& arguments) {
  const Values& given = positional("fromkeys", arguments, 1, 2);
  Dict::Entries entries;
  for (Value& key : collect(given[0]))
    entries.emplace_back(std::move(key), given.size() > 1 ? given[1] : Value::none());
  return dict(std::move(entries));
}

// ---- numbers

Value itself(Session&, const Value& self, const Arguments& arguments) {
  positional("conjugate", arguments, 0, 0);
  return unchanged(self);
}

Value bit_length(Session&, const Value& self, const Arguments& arguments) {
  positional("bit_length", arguments, 0, 0);
  const std::uint64_t magnitude = self.whole() < 0 ? 0 - static_cast<std::uint64_t>(self.whole())
                                                   : static_cast<std::uint64_t>(self.whole());
  return Value::of_integer(magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude));
}

Value bit_count(Session&, const Value& self, const Arguments& arguments) {
  positional("bit_count", arguments, 0, 0);
  const std::uint64_t magnitude = self.whole() < 0 ? 0 - static_cast<std::uint64_t>(self.whole())
                                                   : static_cast<std::uint64_t>(self.whole());
  return Value::of_integer(__builtin_popcountll(magnitude));
}

Value whole_ratio(Session&, const Value& self, const Arguments& arguments) {
  positional("as_integer_ratio", arguments, 0, 0);
  return tuple({unchanged(self), Value::of_integer(1)});
}

Value is_integer(Session&, const Value& self, const Arguments& arguments) {
  positional("is_integer", arguments, 0, 0);
  return Value::of_bool(std::isfinite(self.number()) && self.number() == std::floor(self.number()));
}

Value not_supported(Session&, const Value& self, const Arguments&) {
  fail(fmt::format("a method of '{}' is called that is not supported here", type_name(self)));
}

// ---- which type has which

constexpr NamedMethod kList[] = {{"copy", &copy_of}, {"count", &count_of_items}, {"index", &index_of_item}};
constexpr NamedMethod kTuple[] = {{"count", &count_of_items}, {"index", &index_of_item}};
constexpr NamedMethod kDict[] = {{"copy", &copy_of},
                                 {"fromkeys", &dict_fromkeys},
                                 {"get", &dict_get},
                                 {"items", &dict_view<DictView::Kind::items>},
                                 {"keys", &dict_view<DictView::Kind::keys>},
                                 {"values", &dict_view<DictView::Kind::values>}};
constexpr NamedMethod kInteger[] = {{"as_integer_ratio", &whole_ratio}, {"bit_count", &bit_count},
                                    {"bit_length", &bit_length},        {"conjugate", &itself},
                                    {"from_bytes", &not_supported},     {"to_bytes", &not_supported}};
constexpr NamedMethod kReal[] = {{"as_integer_ratio", &not_supported},
                                 {"conjugate", &itself},
                                 {"fromhex", &not_supported},
                                 {"hex", &not_supported},
                                 {"is_integer", &is_integer}};
// What the sandbox keeps away: they would change what others see.
constexpr std::string_view kChangesList[] = {"append", "clear",  "extend",  "insert",
                                             "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kChangesDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kDictInternals[] = {"__class__",
                                               "__class_getitem__",
                                               "__contains__",
                                               "__delattr__",
                                               "__delitem__",
                                               "__dir__",
                                               "__doc__",
                                               "__eq__",
                                               "__format__",
                                               "__ge__",
                                               "__getattribute__",
                                               "__getitem__",
                                               "__getstate__",
                                               "__gt__",
                                               "__hash__",
                                               "__init__",
                                               "__init_subclass__",
                                               "__ior__",
                                               "__iter__",
                                               "__le__",
                                               "__len__",
                                               "__lt__",
                                               "__ne__",
                                               "__new__",
                                               "__or__",
                                               "__reduce__",
                                               "__reduce_ex__",
                                               "__repr__",
                                               "__reversed__",
                                               "__ror__",
                                               "__setattr__",
                                               "__setitem__",
                                               "__sizeof__",
                                               "__str__",
                                               "__subclasshook__"};

template <class Table>
bool holds(const Table& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

template <class Table>
Method method_in(const Table& table, std::string_view name) {
  for (const NamedMethod& each : table) {
    if (each.name == name) return each.method;
  }
  return nullptr;
}

Method method_of(const Value& of, std::string_view name) {
  switch (of.type()) {
    case Type::text: return text_method(name);
    case Type::list: return method_in(kList, name);
    case Type::tuple: return method_in(kTuple, name);
    case Type::dict: return method_in(kDict, name);
    case Type::boolean:
    case Type::integer: return method_in(kInteger, name);
    case Type::real: return method_in(kReal, name);
    case Type::object:
      if (as<Cycler>(of) != nullptr) return cycler_method(name);
      return as<Range>(of) != nullptr ? method_in(kTuple, name) : nullptr;
    default: return nullptr;
  }
}

bool is_kept_away(const Value& of, std::string_view name) {
  if (of.is(Type::list)) return holds(kChangesList, name);
  if (of.is_dict()) return holds(kChangesDict, name) || holds(kDictInternals, name);
  return false;
}

std::optional<Value> number_attribute(const Value& of, std::string_view name) {
  if (name == "real") return unchanged(of);
  if (name == "imag") return of.is(Type::real) ? Value::of_real(0) : Value::of_integer(0);
  if (of.is(Type::real)) return std::nullopt;
  if (name == "numerator") return unchanged(of);
  if (name == "denominator") return Value::of_integer(1);
  return std::nullopt;
}

Value nothing_there(const Value& of, const Value& key) {
  if (key.is_text())
    return undefined(
        fmt::format("'{}' has no attribute '{}'", object_name(of), escape_for_terminal(key.str())));
  return undefined(fmt::format("{} has no element {}", object_name(of),
                               key.is(Type::object) ? "of that key" : represent(key)));
}

// obj[key] of Python: nullopt for what it raises TypeError or LookupError on.
std::optional<Value> item_of(const Value& of, const Value& key) {
  if (of.is_undefined()) fail(static_cast<const Undefined*>(of.object())->message);
  if (of.is_dict()) {
    if (key.is(Type::list) || key.is_dict()) return std::nullopt;
    const Value* found = of.as_dict().find(key);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  if (!key.is_whole()) return std::nullopt;
  const std::int64_t index = key.whole();
  if (of.is(Type::object)) return of.thing().is_subscriptable() ? of.thing().item(index) : std::nullopt;
  if (!of.is_text() && !of.is_sequence()) return std::nullopt;
  const auto size = static_cast<std::int64_t>(*length(of));
  const std::int64_t at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) return std::nullopt;
  if (of.is_sequence()) return of.items()[static_cast<std::size_t>(at)];
  const Text& whole = of.as_text();
  const auto place = static_cast<std::size_t>(at);
  std::size_t begin = whole.ascii() ? place : byte_of_character(whole.utf8, place);
  const std::size_t from = begin;
  next_character(whole.utf8, begin);
  return text(whole.utf8.substr(from, begin - from), whole.safe);
}

Value part_of_text(const Text& whole, std::size_t from, std::size_t count) {
  if (count == 0) return text("", whole.safe);
  if (whole.ascii()) return text(whole.utf8.substr(from, count), whole.safe);
  const std::size_t begin = byte_of_character(whole.utf8, from);
  const std::string_view rest = std::string_view(whole.utf8).substr(begin);
  return text(std::string(rest.substr(0, byte_of_character(rest, count))), whole.safe);
}

}  // namespace

std::string object_name(const Value& of) {
  return of.is_none() ? "None" : fmt::format("{} object", type_name(of));
}

std::optional<Value> attribute(const Value& of, std::string_view name) {
  if (of.is_undefined()) {
    if (name == "__class__") return undefined("access to attribute '__class__' is unsafe");
    fail(static_cast<const Undefined*>(of.object())->message);
  }
  if (is_kept_away(of, name) || (name.starts_with("__") && name.ends_with("__") && !of.is_dict())) {
    return undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe", name, type_name(of)));
  }
  if (const Method method = method_of(of, name)) return make<BoundMethod>(of, method);
  if (of.is_number()) return number_attribute(of, name);
  if (of.is(Type::tuple) && static_cast<const Sequence*>(of.object())->group) {
    if (name == "grouper") return of.items()[0];
    if (name == "list") return of.items()[1];
  }
  if (of.is(Type::object)) return of.thing().attribute(name);
  return std::nullopt;
}

Value get_attribute(const Value& of, std::string_view name) {
  if (auto found = attribute(of, name)) return *found;
  const Value key = text(std::string(name));
  if (auto item = item_of(of, key)) return *item;
  return nothing_there(of, key);
}

Value get_item(const Value& of, const Value& key) {
  if (auto item = item_of(of, key)) return *item;
  if (key.is_text()) {
    if (auto found = attribute(of, key.str())) return *found;
  }
  return nothing_there(of, key);
}

Value slice(const Value& of, const Value& start, const Value& stop, const Value& step) {
  if (of.is_undefined()) fail(static_cast<const Undefined*>(of.object())->message);
  const auto* range = as<Range>(of);
  if (!of.is_text() && !of.is_sequence() && range == nullptr)
    fail(fmt::format("'{}' object cannot be sliced", type_name(of)));
  const auto number = [](const Value& v, std::int64_t otherwise) {
    if (!v.is_none() && !v.is_missing() && !v.is_whole()) fail("slice indices must be integers or None");
    return v.is_whole() ? v.whole() : otherwise;
  };
  const std::int64_t by = number(step, 1);
  if (by == 0) fail("slice step cannot be zero");
  const auto size = static_cast<std::int64_t>(*length(of));
  const std::int64_t low = by < 0 ? -1 : 0, high = by < 0 ? size - 1 : size;
  const auto place = [&](const Value& v, std::int64_t otherwise) {
    if (!v.is_whole()) return number(v, otherwise);
    const std::int64_t at = v.whole() < 0 ? (v.whole() < -size ? low : v.whole() + size) : v.whole();
    return std::clamp(at, low, high);
  };
  const std::int64_t first = place(start, by < 0 ? high : low), last = place(stop, by < 0 ? low : high);
  const __int128 span = by < 0 ? static_cast<__int128>(first) - last : static_cast<__int128>(last) - first;
  const __int128 stride = by < 0 ? -static_cast<__int128>(by) : static_cast<__int128>(by);
  const auto count = span > 0 ? static_cast<std::size_t>((span + stride - 1) / stride) : 0;
  if (range != nullptr) return make<Range>(range->from(first), range->from(last), range->step() * by);
  const auto from = static_cast<std::size_t>(std::max<std::int64_t>(first, 0));
  if (of.is_text() && by == 1) return part_of_text(of.as_text(), from, count);
  count_work(count / 8);
  if (of.is_sequence()) {
    Values items;
    for (std::size_t i = 0; i < count; ++i)
      items.push_back(of.items()[from + i * static_cast<std::size_t>(by)]);  // wraps where it goes down
    return of.is(Type::list) ? list(std::move(items)) : tuple(std::move(items));
  }
  const std::vector<char32_t> all = characters(of.str());
  std::string picked;
  for (std::size_t i = 0; i < count; ++i)
    append_character(picked, all[from + i * static_cast<std::size_t>(by)]);
  return text(std::move(picked), of.as_text().safe);
}

}  // namespace assay::jinja
