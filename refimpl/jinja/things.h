// Objects that are no plain data: generators, views, ranges, namespaces, functions.
#pragma once

#include <functional>

#include "refimpl/jinja/value.h"

namespace assay::jinja {

// Made as it is read, once: what filters such as map give. A second reading finds nothing left.
class Generator : public Thing, public std::enable_shared_from_this<Generator> {
 public:
  using Next = std::function<bool(Value&)>;
  Generator(Next next, int depth, std::string_view name = "generator")
      : Thing(sizeof(Generator) + 64, depth), next_(std::move(next)), name_(name) {}
  std::string_view type_name() const override { return name_; }
  IteratorPtr iterate() const override;
  bool next(Value& item) const;

 private:
  mutable Next next_;
  mutable bool ended_ = false;
  std::string_view name_;
};
Value generator(Generator::Next next, int depth, std::string_view name = "generator");
Value generator(IteratorPtr iterator, int depth, std::string_view name);
// Starts `begin` when it is first read, and gives what that gives.
Value lazy(std::function<IteratorPtr()> begin, int depth);
IteratorPtr values_iterator(Values values);

class DictView : public Thing {
 public:
  enum class Kind : std::uint8_t { keys, values, items };
  DictView(Value of, Kind kind) : Thing(sizeof(DictView), of.depth()), of_(std::move(of)), kind_(kind) {}
  std::string_view type_name() const override;
  std::string represent() const override;
  std::optional<std::size_t> length() const override { return of_.as_dict().entries.size(); }
  IteratorPtr iterate() const override { return values_iterator(all()); }
  IteratorPtr reversed() const override;
  bool equals(const Thing& other) const override;
  bool hashable() const override { return kind_ == Kind::values; }
  std::optional<bool> contains(const Value& item) const override;

 private:
  Values all() const;
  Value of_;
  Kind kind_;
};

class Range : public Thing {
 public:
  Range(std::int64_t start, std::int64_t stop, std::int64_t step);
  std::string_view type_name() const override { return "range"; }
  std::string represent() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  std::optional<std::size_t> length() const override { return length_; }
  std::optional<Value> item(std::int64_t index) const override;
  bool is_subscriptable() const override { return true; }
  IteratorPtr iterate() const override;
  IteratorPtr reversed() const override;
  bool equals(const Thing& other) const override;
  std::optional<bool> contains(const Value& item) const override;
  std::int64_t at(std::size_t index) const { return start_ + static_cast<std::int64_t>(index) * step_; }
  std::int64_t from(std::int64_t index) const { return start_ + index * step_; }
  std::int64_t step() const { return step_; }

 private:
  std::int64_t start_, stop_, step_;
  std::size_t length_ = 0;
};

class Namespace : public Thing, public Clearable {
 public:
  explicit Namespace(Dict::Entries entries) : Thing(sizeof(Namespace)), entries_(std::move(entries)) {}
  std::string_view type_name() const override { return "Namespace"; }
  std::string represent() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  void set(std::string_view name, Value value) const;
  void clear() override { entries_.clear(); }

 private:
  mutable Dict::Entries entries_;
};
// Kept by the session, for one may hold another that holds it.
Value make_namespace(Session& session, Dict::Entries entries);

using FunctionOf = Value (*)(Session&, Arguments&);
class GlobalFunction : public Thing {
 public:
  GlobalFunction(std::string_view name, FunctionOf function)
      : Thing(sizeof(GlobalFunction)), name_(name), function_(function) {}
  std::string_view type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Session& session, Arguments& arguments) const override { return function_(session, arguments); }
  std::optional<Value> attribute(std::string_view name) const override;

 private:
  std::string_view name_;
  FunctionOf function_;
};

// Whose next() gives its items in turn.
class Cycler : public Thing {
 public:
  explicit Cycler(Values items) : Thing(sizeof(Cycler), deepest(items)), items_(tuple(std::move(items))) {}
  std::string_view type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(std::string_view name) const override;
  Value next() const;
  void reset() const { at_ = 0; }

 private:
  Value items_;
  mutable std::size_t at_ = 0;
};

// Gives nothing when first called, and then its separator.
class Joiner : public Thing {
 public:
  explicit Joiner(Value separator)
      : Thing(sizeof(Joiner), separator.depth()), separator_(std::move(separator)) {}
  std::string_view type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value call(Session&, Arguments& arguments) const override;
  std::optional<Value> attribute(std::string_view name) const override;

 private:
  Value separator_;
  mutable bool used_ = false;
};

// x[1:2, 3] has one in its key.
class SliceValue : public Thing {
 public:
  SliceValue(Value a, Value b, Value c)
      : Thing(sizeof(SliceValue)), start(std::move(a)), stop(std::move(b)), step(std::move(c)) {}
  std::string_view type_name() const override { return "slice"; }
  bool hashable() const override { return false; }
  Value start, stop, step;
};

// A method of a value, not yet called.
using Method = Value (*)(Session&, const Value& self, const Arguments&);
class BoundMethod : public Thing {
 public:
  BoundMethod(Value self, Method method)
      : Thing(sizeof(BoundMethod), self.depth()), self_(std::move(self)), method_(method) {}
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  Value call(Session& session, Arguments& arguments) const override {
    return method_(session, self_, arguments);
  }
  bool equals(const Thing& other) const override;

 private:
  Value self_;
  Method method_;
};

Method cycler_method(std::string_view name);  // nullptr: it has none of that name

// What every template can name: range, dict, namespace, cycler, joiner, raise_exception, strftime_now, lipsum.
Dict::Entries global_functions();
// dict(…): of a mapping or of pairs, and of names.
Dict::Entries dict_entries(std::string_view callee, const Arguments& arguments);

}  // namespace assay::jinja
