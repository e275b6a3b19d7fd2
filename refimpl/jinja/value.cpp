#include "refimpl/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

constexpr int kDeepest = 400;         // containers in containers: taking them apart recurses
constexpr std::size_t kIndexed = 12;  // entries of a dict that are looked through one by one

std::size_t index_bytes(const Dict::Entries& entries) {
  std::size_t bytes = sizeof(Dict) + entries.size() * sizeof(entries[0]);
  if (entries.size() <= kIndexed) return bytes;
  for (const auto& [key, value] : entries) bytes += 96 + (key.is_text() ? key.str().size() : 32);
  return bytes;
}

int deepest_of(const Dict::Entries& entries) {
  int depth = 0;
  for (const auto& [key, value] : entries) depth = std::max({depth, key.depth(), value.depth()});
  return depth;
}

class SequenceIterator : public Iterator {
 public:
  explicit SequenceIterator(Value of) : of_(std::move(of)) {}
  bool next(Value& item) override {
    if (at_ >= of_.items().size()) return false;
    item = of_.items()[at_++];
    return true;
  }

 private:
  Value of_;
  std::size_t at_ = 0;
};

class TextIterator : public Iterator {
 public:
  explicit TextIterator(Value of) : of_(std::move(of)) {}
  bool next(Value& item) override {
    if (at_ >= of_.str().size()) return false;
    const std::size_t begin = at_;
    next_character(of_.str(), at_);
    item = text(of_.str().substr(begin, at_ - begin));
    return true;
  }

 private:
  Value of_;
  std::size_t at_ = 0;
};

class KeyIterator : public Iterator {
 public:
  explicit KeyIterator(Value of) : of_(std::move(of)) {}
  bool next(Value& item) override {
    if (at_ >= of_.as_dict().entries.size()) return false;
    item = of_.as_dict().entries[at_++].first;
    return true;
  }

 private:
  Value of_;
  std::size_t at_ = 0;
};

class NoIterator : public Iterator {
 public:
  bool next(Value&) override { return false; }
};

class BackwardIterator : public Iterator {
 public:
  explicit BackwardIterator(Values of) : of_(std::move(of)) {}
  bool next(Value& item) override {
    if (of_.empty()) return false;
    item = std::move(of_.back());
    of_.pop_back();
    return true;
  }

 private:
  Values of_;
};

}  // namespace

Object::Object(std::size_t bytes, int depth) : depth_(depth + 1) {
  if (depth_ > kDeepest) fail(fmt::format("lists or dicts are nested more than {} deep", kDeepest));
  if (Session::current() == nullptr) return;
  Session::current()->charge(bytes);
  Session::current()->work(1 + bytes / 64);
  charged_ = bytes;
}

Object::~Object() {
  if (charged_ != 0 && Session::current() != nullptr) Session::current()->refund(charged_);
}

Text::Text(std::string of, bool is_safe)
    : Object(sizeof(Text) + of.size()), utf8(std::move(of)), length(count_characters(utf8)), safe(is_safe) {
  if (Session::current() != nullptr) Session::current()->check_text(utf8.size());
}

Sequence::Sequence(Values values, bool is_group)
    : Object(sizeof(Sequence) + values.size() * sizeof(Value), deepest(values)),
      items(std::move(values)),
      group(is_group) {}

Dict::Dict(Entries all) : Object(index_bytes(all), deepest_of(all)) {
  for (auto& entry : all) {
    std::string key = hash_key(entry.first);
    const auto [place, is_new] = index_.emplace(std::move(key), entries.size());
    if (is_new) {
      entries.push_back(std::move(entry));
    } else {
      entries[place->second].second = std::move(entry.second);
    }
  }
  if (entries.size() <= kIndexed) index_.clear();
}

const Value* Dict::find(const Value& key) const {
  if (key.is_text()) return find(std::string_view(key.str()));
  const std::string wanted = hash_key(key);  // also where nothing is there to be found
  if (!index_.empty()) {
    const auto found = index_.find(wanted);
    return found == index_.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& entry : entries) {
    if (!entry.first.is_text() && hash_key(entry.first) == wanted) return &entry.second;
  }
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (!index_.empty()) {
    const auto found = index_.find("s" + std::string(key));
    return found == index_.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& entry : entries) {
    if (entry.first.is_text() && entry.first.str() == key) return &entry.second;
  }
  return nullptr;
}

// ---------------------------------------------------------------------------------------- Value

const Text& Value::as_text() const {
  return static_cast<const Text&>(*object_);
}
const std::string& Value::str() const {
  return as_text().utf8;
}
const Values& Value::items() const {
  return static_cast<const Sequence&>(*object_).items;
}
const Dict& Value::as_dict() const {
  return static_cast<const Dict&>(*object_);
}
const Thing& Value::thing() const {
  return static_cast<const Thing&>(*object_);
}

Value undefined(std::string message) {
  return Value(Type::undefined, std::make_shared<const Undefined>(std::move(message)));
}
Value text(std::string utf8, bool safe) {
  return Value(Type::text, std::make_shared<const Text>(std::move(utf8), safe));
}
Value text(std::string utf8) {
  return text(std::move(utf8), false);
}
Value safe_text(std::string utf8) {
  return text(std::move(utf8), true);
}
Value list(Values items) {
  return Value(Type::list, std::make_shared<const Sequence>(std::move(items), false));
}
Value tuple(Values items) {
  return Value(Type::tuple, std::make_shared<const Sequence>(std::move(items), false));
}
Value dict(Dict::Entries entries) {
  return Value(Type::dict, std::make_shared<const Dict>(std::move(entries)));
}

Value wide(std::string_view digits) {
  const bool negative = digits.starts_with('-');
  std::string_view magnitude = digits.substr(negative ? 1 : 0);
  while (magnitude.size() > 1 && magnitude.front() == '0') magnitude.remove_prefix(1);
  std::uint64_t value = 0;
  bool fits = magnitude.size() <= 19;
  for (std::size_t i = 0; fits && i < magnitude.size(); ++i)
    value = value * 10 + static_cast<std::uint64_t>(magnitude[i] - '0');
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (fits && value <= kMost + (negative ? 1 : 0)) {
    return Value::of_integer(negative ? static_cast<std::int64_t>(0 - value)
                                      : static_cast<std::int64_t>(value));
  }
  std::string kept = (negative ? "-" : "") + std::string(magnitude);
  return Value(Type::wide, std::make_shared<const WideInteger>(std::move(kept)));
}

int deepest(const Values& values) {
  int depth = 0;
  for (const Value& value : values) depth = std::max(depth, value.depth());
  return depth;
}

// ---------------------------------------------------------------------------------------- protocols

std::string_view type_name(const Value& value) {
  switch (value.type()) {
    case Type::missing: return "missing";
    case Type::undefined: return "Undefined";
    case Type::none: return "NoneType";
    case Type::boolean: return "bool";
    case Type::integer:
    case Type::wide: return "int";
    case Type::real: return "float";
    case Type::text: return value.as_text().safe ? "Markup" : "str";
    case Type::list: return "list";
    case Type::tuple: return "tuple";
    case Type::dict: return "dict";
    case Type::object: return value.thing().type_name();
  }
  return "";
}

bool truth(const Value& value) {
  switch (value.type()) {
    case Type::missing:
    case Type::undefined:
    case Type::none: return false;
    case Type::boolean:
    case Type::integer: return value.whole() != 0;
    case Type::wide: return true;
    case Type::real: return value.number() != 0;  // NaN is true
    case Type::text: return !value.str().empty();
    case Type::list:
    case Type::tuple: return !value.items().empty();
    case Type::dict: return !value.as_dict().entries.empty();
    case Type::object: return value.thing().length().value_or(1) != 0;
  }
  return false;
}

std::optional<std::size_t> length(const Value& value) {
  switch (value.type()) {
    case Type::undefined: return 0;
    case Type::text: return value.as_text().length;
    case Type::list:
    case Type::tuple: return value.items().size();
    case Type::dict: return value.as_dict().entries.size();
    case Type::object: return value.thing().length();
    default: return std::nullopt;
  }
}

IteratorPtr iterate(const Value& value) {
  switch (value.type()) {
    case Type::undefined: return std::make_unique<NoIterator>();
    case Type::text: return std::make_unique<TextIterator>(value);
    case Type::list:
    case Type::tuple: return std::make_unique<SequenceIterator>(value);
    case Type::dict: return std::make_unique<KeyIterator>(value);
    case Type::object: return value.thing().iterate();
    default: return nullptr;
  }
}

Values collect(const Value& value) {
  const IteratorPtr iterator = iterate(value);
  if (iterator == nullptr) fail(fmt::format("'{}' object is not iterable", type_name(value)));
  Values all;
  for (Value item; iterator->next(item);) {
    count_work(1);
    all.push_back(std::move(item));
  }
  return all;
}

IteratorPtr reversed(const Value& value) {
  switch (value.type()) {
    case Type::undefined:
    case Type::text:
    case Type::list:
    case Type::tuple:
    case Type::dict: return std::make_unique<BackwardIterator>(collect(value));
    case Type::object: return value.thing().reversed();
    default: return nullptr;
  }
}

bool callable(const Value& value) {
  return value.is_undefined() || (value.is(Type::object) && value.thing().callable());
}

bool is_safe(const Value& value) {
  return value.is_text() && value.as_text().safe;
}

std::string Thing::represent() const {
  fail(fmt::format("the template writes a {} object, which is an address in memory", type_name()));
}
std::optional<Value> Thing::attribute(std::string_view) const {
  return std::nullopt;
}
std::optional<Value> Thing::item(std::int64_t) const {
  return std::nullopt;
}
Value Thing::call(Session&, Arguments&) const {
  fail(fmt::format("'{}' object is not callable", type_name()));
}

}  // namespace assay::jinja
