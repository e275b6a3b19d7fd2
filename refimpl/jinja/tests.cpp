#include "refimpl/jinja/tests.h"

#include <fmt/format.h>

#include "refimpl/jinja/arguments.h"
#include "refimpl/jinja/filters.h"
#include "refimpl/jinja/methods.h"

namespace assay::jinja {
namespace {

using Test = bool (*)(const Value& subject, const Value& other);

bool remainder_is(const Value& of, const Value& by, std::int64_t wanted) {
  return equal(compute(Operator::modulo, of, by), Value::of_integer(wanted));
}

// Has a length and items.
bool is_sequence(const Value& v) {
  if (v.is(Type::object)) return v.thing().is_subscriptable() && v.thing().length().has_value();
  return length(v).has_value();
}

struct NamedTest {
  std::string_view name;
  std::string_view parameter;  // of its one argument; empty: it takes none; "-": it has no name
  Test test;
};

constexpr NamedTest kTests[] = {
    {"odd", "", [](const Value& v, const Value&) { return remainder_is(v, Value::of_integer(2), 1); }},
    {"even", "", [](const Value& v, const Value&) { return remainder_is(v, Value::of_integer(2), 0); }},
    {"divisibleby", "num", [](const Value& v, const Value& num) { return remainder_is(v, num, 0); }},
    {"defined", "", [](const Value& v, const Value&) { return !v.is_undefined(); }},
    {"undefined", "", [](const Value& v, const Value&) { return v.is_undefined(); }},
    {"filter", "",
     [](const Value& v, const Value&) {
       hash_key(v);
       return v.is_text() && is_filter(v.str());
     }},
    {"test", "",
     [](const Value& v, const Value&) {
       hash_key(v);
       return v.is_text() && is_test(v.str());
     }},
    {"none", "", [](const Value& v, const Value&) { return v.is_none(); }},
    {"boolean", "", [](const Value& v, const Value&) { return v.is(Type::boolean); }},
    {"false", "", [](const Value& v, const Value&) { return v.is(Type::boolean) && !truth(v); }},
    {"true", "", [](const Value& v, const Value&) { return v.is(Type::boolean) && truth(v); }},
    {"integer", "", [](const Value& v, const Value&) { return v.is(Type::integer) || v.is(Type::wide); }},
    {"float", "", [](const Value& v, const Value&) { return v.is(Type::real); }},
    {"lower", "", [](const Value& v, const Value&) { return is_all_of_case(write(v), true); }},
    {"upper", "", [](const Value& v, const Value&) { return is_all_of_case(write(v), false); }},
    {"string", "", [](const Value& v, const Value&) { return v.is_text(); }},
    {"mapping", "", [](const Value& v, const Value&) { return v.is_dict(); }},
    {"number", "", [](const Value& v, const Value&) { return v.is_number() || v.is(Type::wide); }},
    {"sequence", "", [](const Value& v, const Value&) { return is_sequence(v); }},
    {"iterable", "", [](const Value& v, const Value&) { return iterate(v) != nullptr; }},
    {"callable", "-0", [](const Value& v, const Value&) { return callable(v); }},
    {"sameas", "other", [](const Value& v, const Value& other) { return same(v, other); }},
    {"escaped", "", [](const Value& v, const Value&) { return is_safe(v); }},
    {"in", "seq", [](const Value& v, const Value& seq) { return contains(seq, v); }},
    {"==", "-", &equal},
    {"eq", "-", &equal},
    {"equalto", "-", &equal},
    {"!=", "-", [](const Value& v, const Value& other) { return !equal(v, other); }},
    {"ne", "-", [](const Value& v, const Value& other) { return !equal(v, other); }},
    {">", "-", [](const Value& v, const Value& other) { return less(other, v); }},
    {"gt", "-", [](const Value& v, const Value& other) { return less(other, v); }},
    {"greaterthan", "-", [](const Value& v, const Value& other) { return less(other, v); }},
    {"ge", "-", [](const Value& v, const Value& other) { return less_or_equal(other, v); }},
    {">=", "-", [](const Value& v, const Value& other) { return less_or_equal(other, v); }},
    {"<", "-", &less},
    {"lt", "-", &less},
    {"lessthan", "-", &less},
    {"<=", "-", &less_or_equal},
    {"le", "-", &less_or_equal},
};

const NamedTest* find_test(std::string_view name) {
  for (const NamedTest& each : kTests) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

}  // namespace

bool less_or_equal(const Value& a, const Value& b) {
  return less(a, b) || equal(a, b);
}

bool is_test(std::string_view name) {
  return find_test(name) != nullptr;
}

bool call_test(Session& session, std::string_view name, const Value& subject, const Arguments& arguments) {
  const NamedTest* test = find_test(name);
  if (test == nullptr) fail(fmt::format("no test is named '{}'", name));
  session.work(1);
  if (test->parameter.empty()) bind(name, arguments, {}, 0);
  if (test->parameter == "-0") positional(name, arguments, 0, 0);
  if (test->parameter.empty() || test->parameter == "-0") return test->test(subject, {});
  if (test->parameter == "-") return test->test(subject, positional(name, arguments, 1, 1)[0]);
  return test->test(subject, bind(name, arguments, {test->parameter}, 1)[0]);
}

}  // namespace assay::jinja
