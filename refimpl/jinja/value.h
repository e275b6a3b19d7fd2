// The values of a template: Python's, as far as templates can make or be given them.
//
//   Value v = text("abc");
//   truth(v); length(v); write(v); represent(v); equal(v, w); less(v, w)
//
// A value never changes once made, namespaces, cyclers and generators aside; containers are shared, not copied.
// Strings are UTF-8; half a surrogate pair, which a literal of a template can make, is kept in three bytes as if
// it were a character. Whole numbers are of 64 bits: larger ones can be read and written, not computed with.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "refimpl/jinja/session.h"

namespace assay::jinja {

enum class Type : std::uint8_t {
  missing,  // a variable that nothing was assigned to, a parameter that was not given
  undefined,
  none,
  boolean,
  integer,
  wide,  // a whole number of more than 64 bits
  real,
  text,
  list,
  tuple,
  dict,
  object,
};

// Base of what lies on the heap: charged to the session in which it was made.
class Object {
 public:
  explicit Object(std::size_t bytes, int depth = 0);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  int depth() const { return depth_; }  // of containers in containers, bounded

 private:
  std::size_t charged_ = 0;
  int depth_;
};

class Thing;
struct Text;
struct Sequence;
struct Dict;

class Value {
 public:
  Value() = default;  // missing
  Value(Type type, std::shared_ptr<const Object> object) : type_(type), object_(std::move(object)) {}
  static Value of_bool(bool b) { return Value(Type::boolean, b ? 1 : 0, 0); }
  static Value of_integer(std::int64_t i) { return Value(Type::integer, i, 0); }
  static Value of_real(double d) { return Value(Type::real, 0, d); }
  static Value none() { return Value(Type::none, 0, 0); }

  Type type() const { return type_; }
  bool is(Type type) const { return type_ == type; }
  bool is_missing() const { return type_ == Type::missing; }
  bool is_undefined() const { return type_ == Type::undefined; }
  bool is_none() const { return type_ == Type::none; }
  bool is_text() const { return type_ == Type::text; }
  bool is_sequence() const { return type_ == Type::list || type_ == Type::tuple; }
  bool is_dict() const { return type_ == Type::dict; }
  bool is_whole() const { return type_ == Type::integer || type_ == Type::boolean; }
  bool is_number() const { return is_whole() || type_ == Type::real; }

  std::int64_t whole() const { return integer_; }  // of integers and booleans
  double number() const { return type_ == Type::real ? real_ : static_cast<double>(integer_); }
  const Text& as_text() const;
  const std::string& str() const;  // the UTF-8 of a text
  const std::vector<Value>& items() const;
  const Dict& as_dict() const;
  const Thing& thing() const;
  const Object* object() const { return object_.get(); }
  const std::shared_ptr<const Object>& shared() const { return object_; }
  int depth() const { return object_ ? object_->depth() : 0; }

 private:
  Value(Type type, std::int64_t i, double d) : type_(type), integer_(i) {
    if (type == Type::real) real_ = d;
  }
  Type type_ = Type::missing;
  union {
    std::int64_t integer_ = 0;
    double real_;
  };
  std::shared_ptr<const Object> object_;
};

using Values = std::vector<Value>;

struct Text : Object {
  Text(std::string text, bool is_safe);
  std::string utf8;
  std::size_t length;  // in characters
  bool safe;           // markupsafe's Markup: escaped already
  bool ascii() const { return length == utf8.size(); }
};

struct Undefined : Object {
  explicit Undefined(std::string why) : Object(sizeof(Undefined) + why.size()), message(std::move(why)) {}
  std::string message;  // of the error that using it is
};

struct WideInteger : Object {
  explicit WideInteger(std::string d) : Object(sizeof(WideInteger) + d.size()), digits(std::move(d)) {}
  std::string digits;  // decimal, perhaps with a minus
};

struct Sequence : Object {
  Sequence(Values values, bool is_group);
  Values items;
  bool group;  // a pair of groupby, whose parts have names
};

// In the order of insertion.
struct Dict : Object {
  using Entries = std::vector<std::pair<Value, Value>>;
  explicit Dict(Entries all);  // of the same key twice the last value holds, at the first's place
  const Value* find(const Value& key) const;  // nullptr: not there. Error where the key cannot be one
  const Value* find(std::string_view key) const;
  Entries entries;

 private:
  std::map<std::string, std::size_t> index_;  // of large ones
};

// Reads on from somewhere. False at the end, and from then on.
class Iterator {
 public:
  virtual ~Iterator() = default;
  virtual bool next(Value& item) = 0;
};
using IteratorPtr = std::unique_ptr<Iterator>;

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Everything else: namespaces, ranges, macros, methods, loops, generators.
class Thing : public Object {
 public:
  using Object::Object;
  virtual std::string_view type_name() const = 0;
  // What repr() gives. Where that is an address, an error: nobody can want it in a prompt.
  virtual std::string represent() const;
  virtual std::optional<Value> attribute(std::string_view name) const;  // nullopt: it has none of that name
  virtual std::optional<std::size_t> length() const { return std::nullopt; }
  virtual std::optional<Value> item(std::int64_t index) const;  // of sequences; nullopt: out of range
  virtual bool is_subscriptable() const { return false; }
  virtual IteratorPtr iterate() const { return nullptr; }
  virtual bool callable() const { return false; }
  virtual Value call(Session& session, Arguments& arguments) const;
  virtual bool equals(const Thing& other) const { return this == &other; }
  virtual bool hashable() const { return true; }
  virtual IteratorPtr reversed() const { return nullptr; }
  virtual std::optional<bool> contains(const Value&) const { return std::nullopt; }
};

Value undefined(std::string message);
Value text(std::string utf8);
Value safe_text(std::string utf8);
Value text(std::string utf8, bool safe);
Value list(Values items);
Value tuple(Values items);
Value dict(Dict::Entries entries);
Value wide(std::string_view digits);  // a 64-bit integer where it fits
template <class T, class... Parts>
Value make(Parts&&... parts) {
  return Value(Type::object, std::make_shared<const T>(std::forward<Parts>(parts)...));
}
template <class T>
const T* as(const Value& value) {
  return value.is(Type::object) ? dynamic_cast<const T*>(value.object()) : nullptr;
}
int deepest(const Values& values);

// "str", "int", "NoneType": as Python names it.
std::string_view type_name(const Value& value);
bool truth(const Value& value);
std::optional<std::size_t> length(const Value& value);  // nullopt: it has none
IteratorPtr iterate(const Value& value);                // nullptr: it cannot be iterated over
Values collect(const Value& value);                     // list(value); an error where it cannot be
IteratorPtr reversed(const Value& value);               // nullptr: it cannot be read backwards
bool callable(const Value& value);
bool is_safe(const Value& value);  // a Markup

// ---- text.cpp's neighbours: how values are written (represent.cpp)
std::string write(const Value& value);  // str(value)
std::string represent(const Value& value);
std::string represent_text(std::string_view utf8);
std::string represent_real(double value);

// ---- comparing (compare.cpp)
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);          // Error where Python has no order of the two
bool contains(const Value& in, const Value& item);  // item in `in`
bool same(const Value& a, const Value& b);          // a is b
std::string hash_key(const Value& value);           // equal for equal keys; Error where it is unhashable

// ---- computing (arithmetic.cpp)
enum class Operator : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  both,
  either
};
Value compute(Operator op, const Value& a, const Value& b);
Value negated(const Value& a);
Value unchanged(const Value& a);  // +a
double round_to(double value, std::int64_t digits);
// As int(text, base); nullopt where Python raises ValueError.
std::optional<Value> parse_integer(std::string_view text, std::int64_t base);
std::optional<double> parse_real(std::string_view text);
Value integer_of_real(double value);  // int(3.7); Error for what is no number

}  // namespace assay::jinja
