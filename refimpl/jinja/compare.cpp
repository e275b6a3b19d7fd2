// Python's ==, <, in, is and hash.
#include <fmt/format.h>

#include <cmath>

#include "refimpl/jinja/value.h"

namespace assay::jinja {
namespace {

const std::string& digits_of(const Value& wide) {
  return static_cast<const WideInteger*>(wide.object())->digits;
}

// Exact also where the double has more than 53 bits of integer: compared as integers then.
int compare_numbers(const Value& a, const Value& b) {  // -1, 0, 1; 2: not comparable (NaN)
  if (a.is_whole() && b.is_whole()) return a.whole() < b.whole() ? -1 : a.whole() > b.whole() ? 1 : 0;
  if (std::isnan(a.number()) || std::isnan(b.number())) return 2;
  if (a.is(Type::real) && b.is(Type::real))
    return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
  if (a.is(Type::real)) return -compare_numbers(b, a);
  const long double x = static_cast<long double>(a.whole()), y = b.number();  // 64 bits of mantissa
  return x < y ? -1 : x > y ? 1 : 0;
}

bool wide_against_number(const Value& wide, const Value& other) {  // wide < other
  const bool negative = digits_of(wide).starts_with('-');
  if (other.is_whole()) return negative;
  if (std::isinf(other.number())) return other.number() > 0;
  fail("a whole number of more than 64 bits is compared with a float");
}

bool less_wide(const Value& a, const Value& b) {
  if (!b.is(Type::wide)) return wide_against_number(a, b);
  if (!a.is(Type::wide)) return !wide_against_number(b, a);
  const std::string &x = digits_of(a), &y = digits_of(b);
  const bool x_negative = x.starts_with('-'), y_negative = y.starts_with('-');
  if (x_negative != y_negative) return x_negative;
  const bool smaller = x.size() != y.size() ? x.size() < y.size() : x < y;
  return x != y && smaller != x_negative;
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(key);
    if (other == nullptr || !equal(value, *other)) return false;
  }
  return true;
}

bool equal_items(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i]) && !equal(a[i], b[i])) return false;
  }
  return true;
}

bool less_items(const Value& a, const Value& b) {
  const Values &x = a.items(), &y = b.items();
  for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
    if (!same(x[i], y[i]) && !equal(x[i], y[i])) return less(x[i], y[i]);
  }
  return x.size() < y.size();
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  count_work(1);
  if (Session::current() != nullptr) Session::current()->check_stack();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::undefined:
    case Type::none: return true;
    case Type::wide: return digits_of(a) == digits_of(b);
    case Type::text: return a.str() == b.str();
    case Type::list:
    case Type::tuple: return equal_items(a.items(), b.items());
    case Type::dict: return equal_dicts(a.as_dict(), b.as_dict());
    case Type::object: return a.thing().equals(b.thing());
    default: return false;
  }
}

bool less(const Value& a, const Value& b) {
  count_work(1);
  if (a.is_undefined()) fail(static_cast<const Undefined*>(a.object())->message);
  if (b.is_undefined()) fail(static_cast<const Undefined*>(b.object())->message);
  const bool a_wide = a.is(Type::wide), b_wide = b.is(Type::wide);
  if ((a_wide || a.is_number()) && (b_wide || b.is_number()))
    return a_wide || b_wide ? less_wide(a, b) : compare_numbers(a, b) == -1;
  if (a.is_text() && b.is_text()) return a.str() < b.str();  // UTF-8 sorts as its characters do
  if (a.type() == b.type() && a.is_sequence()) return less_items(a, b);
  fail(fmt::format("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b)));
}

bool same(const Value& a, const Value& b) {
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::none:
    case Type::missing: return true;
    case Type::boolean:
    case Type::integer: return a.whole() == b.whole();  // small ones are one object in Python
    case Type::real: return false;
    default: return a.object() == b.object();
  }
}

bool contains(const Value& in, const Value& item) {
  switch (in.type()) {
    case Type::text:
      if (item.is_text()) {
        count_copy(in.str().size());
        return in.str().find(item.str()) != std::string::npos;
      }
      fail(fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
    case Type::list:
    case Type::tuple: {
      for (const Value& each : in.items()) {
        if (same(each, item) || equal(each, item)) return true;
      }
      return false;
    }
    case Type::dict: return in.as_dict().find(item) != nullptr;
    default: break;
  }
  if (in.is(Type::object)) {
    if (const auto answer = in.thing().contains(item)) return *answer;
  }
  const IteratorPtr iterator = iterate(in);
  if (iterator == nullptr) fail(fmt::format("argument of type '{}' is not iterable", type_name(in)));
  for (Value each; iterator->next(each);) {
    if (equal(each, item)) return true;
  }
  return false;
}

// A letter for the kind and what tells apart within it: 1, 1.0 and True are one key.
std::string hash_key(const Value& value) {
  count_work(1);
  switch (value.type()) {
    case Type::none: return "N";
    case Type::undefined: return "U";
    case Type::boolean:
    case Type::integer: return fmt::format("n{}", value.whole());
    case Type::wide: return "n" + digits_of(value);
    case Type::real: {
      const double x = value.number();
      const bool whole = x == std::floor(x) && std::fabs(x) < 9.2e18;
      return whole ? fmt::format("n{}", static_cast<std::int64_t>(x)) : "n" + represent_real(x);
    }
    case Type::text: return "s" + value.str();
    case Type::tuple: {
      std::string key = "t";
      for (const Value& item : value.items()) {
        const std::string part = hash_key(item);
        key += fmt::format("{}:{}", part.size(), part);
      }
      count_copy(key.size());
      return key;
    }
    case Type::object:
      if (value.thing().hashable()) return fmt::format("o{}", static_cast<const void*>(value.object()));
      break;
    default: break;
  }
  fail(fmt::format("unhashable type: '{}'", type_name(value)));
}

}  // namespace assay::jinja
