#include "refimpl/jinja/things.h"

#include <fmt/format.h>

#include <cmath>

#include "refimpl/jinja/arguments.h"

namespace assay::jinja {
namespace {

class GeneratorIterator : public Iterator {
 public:
  explicit GeneratorIterator(std::shared_ptr<const Generator> of) : of_(std::move(of)) {}
  bool next(Value& item) override { return of_->next(item); }

 private:
  std::shared_ptr<const Generator> of_;
};

class ValuesIterator : public Iterator {
 public:
  explicit ValuesIterator(Values values) : values_(std::move(values)) {}
  bool next(Value& item) override {
    if (at_ >= values_.size()) return false;
    item = std::move(values_[at_++]);
    return true;
  }

 private:
  Values values_;
  std::size_t at_ = 0;
};

class RangeIterator : public Iterator {
 public:
  RangeIterator(std::int64_t first, std::int64_t step, std::size_t count)
      : next_(first), step_(step), left_(count) {}
  bool next(Value& item) override {
    if (left_ == 0) return false;
    --left_;
    item = Value::of_integer(next_);
    if (left_ != 0) next_ += step_;
    return true;
  }

 private:
  std::int64_t next_, step_;
  std::size_t left_;
};

Value cycler_next(Session&, const Value& self, const Arguments& arguments) {
  positional("next", arguments, 0, 0);
  return as<Cycler>(self)->next();
}
Value cycler_reset(Session&, const Value& self, const Arguments& arguments) {
  positional("reset", arguments, 0, 0);
  as<Cycler>(self)->reset();
  return Value::none();
}

}  // namespace

bool Generator::next(Value& item) const {
  if (ended_) return false;
  if (Session* session = Session::current()) {
    session->check_stack();
    session->work(1);
  }
  const Next keep_alive = next_;  // it may read itself
  ended_ = !keep_alive(item);
  if (ended_) next_ = nullptr;
  return !ended_;
}

IteratorPtr Generator::iterate() const {
  return std::make_unique<GeneratorIterator>(shared_from_this());
}

Value generator(Generator::Next next, int depth, std::string_view name) {
  return make<Generator>(std::move(next), depth, name);
}

Value generator(IteratorPtr iterator, int depth, std::string_view name) {
  const std::shared_ptr<Iterator> shared = std::move(iterator);
  return generator([shared](Value& item) { return shared->next(item); }, depth, name);
}

Value lazy(std::function<IteratorPtr()> begin, int depth) {
  auto state = std::make_shared<IteratorPtr>();
  return generator(
      [state, begin = std::move(begin)](Value& item) {
        if (*state == nullptr) *state = begin();
        return (*state)->next(item);
      },
      depth);
}

IteratorPtr values_iterator(Values values) {
  return std::make_unique<ValuesIterator>(std::move(values));
}

// ---------------------------------------------------------------------------------------- views

std::string_view DictView::type_name() const {
  return kind_ == Kind::keys ? "dict_keys" : kind_ == Kind::values ? "dict_values" : "dict_items";
}

Values DictView::all() const {
  Values values;
  for (const auto& [key, value] : of_.as_dict().entries)
    values.push_back(kind_ == Kind::keys ? key : kind_ == Kind::values ? value : tuple({key, value}));
  return values;
}

std::string DictView::represent() const {
  return fmt::format("{}({})", type_name(), jinja::represent(list(all())));
}

IteratorPtr DictView::reversed() const {
  Values values = all();
  return values_iterator(Values(values.rbegin(), values.rend()));
}

// Keys and pairs compare as sets do.
bool DictView::equals(const Thing& other) const {
  const auto* view = dynamic_cast<const DictView*>(&other);
  if (this == &other) return true;
  if (view == nullptr || view->kind_ == Kind::values || kind_ == Kind::values || length() != view->length())
    return false;
  for (const Value& item : all()) {
    if (!view->contains(item).value_or(false)) return false;
  }
  return true;
}

std::optional<bool> DictView::contains(const Value& item) const {
  if (kind_ == Kind::keys) return of_.as_dict().find(item) != nullptr;
  if (kind_ == Kind::values) return std::nullopt;
  if (!item.is(Type::tuple) || item.items().size() != 2) return false;
  const Value* value = of_.as_dict().find(item.items()[0]);
  return value != nullptr && equal(*value, item.items()[1]);
}

// ---------------------------------------------------------------------------------------- range

Range::Range(std::int64_t start, std::int64_t stop, std::int64_t step)
    : Thing(sizeof(Range)), start_(start), stop_(stop), step_(step) {
  const __int128 distance =
      step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  const __int128 stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  length_ = distance > 0 ? static_cast<std::size_t>((distance + stride - 1) / stride) : 0;
}

std::string Range::represent() const {
  return step_ == 1 ? fmt::format("range({}, {})", start_, stop_)
                    : fmt::format("range({}, {}, {})", start_, stop_, step_);
}

std::optional<Value> Range::attribute(std::string_view name) const {
  if (name == "start") return Value::of_integer(start_);
  if (name == "stop") return Value::of_integer(stop_);
  if (name == "step") return Value::of_integer(step_);
  return std::nullopt;
}

std::optional<Value> Range::item(std::int64_t index) const {
  if (index < 0) index += static_cast<std::int64_t>(length_);
  if (index < 0 || index >= static_cast<std::int64_t>(length_)) return std::nullopt;
  return Value::of_integer(at(static_cast<std::size_t>(index)));
}

IteratorPtr Range::iterate() const {
  return std::make_unique<RangeIterator>(start_, step_, length_);
}

IteratorPtr Range::reversed() const {
  if (length_ == 0) return values_iterator({});
  return std::make_unique<RangeIterator>(at(length_ - 1), -step_, length_);
}

bool Range::equals(const Thing& other) const {
  const auto* range = dynamic_cast<const Range*>(&other);
  if (range == nullptr || range->length_ != length_) return false;
  return length_ == 0 || (range->start_ == start_ && (length_ == 1 || range->step_ == step_));
}

std::optional<bool> Range::contains(const Value& item) const {
  if (!item.is_number()) return false;
  const double number = item.number();
  if (item.is(Type::real) && number != std::floor(number)) return false;
  for (std::size_t i = 0; i < length_; ++i) {
    count_work(1);
    if (equal(Value::of_integer(at(i)), item)) return true;
  }
  return false;
}

// ---------------------------------------------------------------------------------------- the rest

std::string Namespace::represent() const {
  return fmt::format("<Namespace {}>", jinja::represent(dict(entries_)));
}

std::optional<Value> Namespace::attribute(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key.is_text() && key.str() == name) return value;
  }
  return std::nullopt;
}

void Namespace::set(std::string_view name, Value value) const {
  for (auto& [key, held] : entries_) {
    if (!key.is_text() || key.str() != name) continue;
    held = std::move(value);
    return;
  }
  entries_.emplace_back(text(std::string(name)), std::move(value));
}

Value make_namespace(Session& session, Dict::Entries entries) {
  auto made = std::make_shared<Namespace>(std::move(entries));
  session.keep(made);
  return Value(Type::object, std::static_pointer_cast<const Thing>(made));
}

std::optional<Value> Cycler::attribute(std::string_view name) const {
  if (name == "current") return items_.items()[at_];
  if (name == "items") return items_;
  if (name == "pos") return Value::of_integer(static_cast<std::int64_t>(at_));
  return std::nullopt;  // its methods: methods.cpp
}

Value Cycler::next() const {
  Value item = items_.items()[at_];
  at_ = (at_ + 1) % items_.items().size();
  return item;
}

Value Joiner::call(Session&, Arguments& arguments) const {
  positional("joiner", arguments, 0, 0);
  if (used_) return separator_;
  used_ = true;
  return text("");
}

std::optional<Value> Joiner::attribute(std::string_view name) const {
  if (name == "sep") return separator_;
  if (name == "used") return Value::of_bool(used_);
  return std::nullopt;
}

bool BoundMethod::equals(const Thing& other) const {
  const auto* method = dynamic_cast<const BoundMethod*>(&other);
  return method != nullptr && method->method_ == method_ && same(method->self_, self_);
}

Method cycler_method(std::string_view name) {
  return name == "next" ? &cycler_next : name == "reset" ? &cycler_reset : nullptr;
}

}  // namespace assay::jinja
