#include "refimpl/jinja/runtime_things.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "refimpl/jinja/arguments.h"

namespace assay::jinja {
namespace {

Value loop_cycle(Session&, const Value& self, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("cycle() takes no keyword arguments");
  return as<LoopValue>(self)->cycle(arguments.positional);
}

Value loop_changed(Session&, const Value& self, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("changed() takes no keyword arguments");
  return Value::of_bool(as<LoopValue>(self)->changed(arguments.positional));
}

bool holds_object(const Value& value) {
  if (value.is(Type::object)) return true;
  if (value.is_sequence()) return std::any_of(value.items().begin(), value.items().end(), holds_object);
  if (!value.is_dict()) return false;
  const auto& entries = value.as_dict().entries;
  return std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return holds_object(entry.first) || holds_object(entry.second);
  });
}

class BlockReference : public Thing {
 public:
  BlockReference(Evaluator& evaluator, const Block& block, Context& context)
      : Thing(sizeof(BlockReference)), evaluator_(evaluator), block_(block), context_(context) {}
  std::string_view type_name() const override { return "BlockReference"; }
  bool callable() const override { return true; }
  Value call(Session& session, Arguments& arguments) const override {
    positional("a block", arguments, 0, 0);
    return text(evaluator_.run_block(block_, context_), session.autoescape);
  }
  std::optional<Value> attribute(std::string_view name) const override {
    if (name == "name") return text(block_.name);
    if (name == "super") return undefined(fmt::format("there is no parent block called '{}'", block_.name));
    return std::nullopt;
  }

 private:
  Evaluator& evaluator_;
  const Block& block_;
  Context& context_;
};

class LoopIterator : public Iterator {
 public:
  explicit LoopIterator(const LoopValue& loop) : loop_(loop) {}
  bool next(Value&) override { fail("a loop is iterated over inside of itself"); }

 private:
  [[maybe_unused]] const LoopValue& loop_;
};

}  // namespace

// ---------------------------------------------------------------------------------------- macros

std::string MacroValue::represent() const {
  return named_ ? fmt::format("<Macro {}>", represent_text(name_)) : "<Macro anonymous>";
}

std::optional<Value> MacroValue::attribute(std::string_view name) const {
  if (name == "name") return named_ ? text(name_) : Value::none();
  if (name == "arguments") {
    Values names;
    for (const std::string& each : body_.parameters) names.push_back(text(each));
    return tuple(std::move(names));
  }
  if (name == "catch_kwargs") return Value::of_bool(body_.kwargs_slot >= 0);
  if (name == "catch_varargs") return Value::of_bool(body_.varargs_slot >= 0);
  if (name == "caller") return Value::of_bool(body_.accesses_caller);
  if (name == "explicit_caller")
    return Value::of_bool(std::find(body_.parameters.begin(), body_.parameters.end(), "caller") !=
                          body_.parameters.end());
  return std::nullopt;
}

// First the positional arguments, then names and defaults; what is left over goes to kwargs and varargs where the
// body looks at them, and is an error where it does not.
Value MacroValue::call(Session& session, Arguments& arguments) const {
  const Session::Call open(session);
  const std::size_t count = body_.parameters.size();
  Values& given = arguments.positional;
  Values values(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(std::min(count, given.size())));
  const auto take = [&](std::string_view name) {
    const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& named) { return named.first == name; });
    if (found == arguments.named.end()) return Value();
    Value value = found->second;
    arguments.named.erase(found);
    return value;
  };
  bool found_caller = false;
  if (values.size() != count) {
    for (std::size_t i = values.size(); i < count; ++i) {
      found_caller = found_caller || body_.parameters[i] == "caller";
      values.push_back(take(body_.parameters[i]));
    }
  } else {
    found_caller =
        std::find(body_.parameters.begin(), body_.parameters.end(), "caller") != body_.parameters.end();
  }
  Value caller;
  if (body_.accesses_caller && !found_caller) {
    caller = take("caller");
    if (caller.is_missing() || caller.is_none()) caller = undefined("No caller defined");
  }
  // A caller that the body has no place for: named as a parameter, and given by position besides.
  if (body_.accesses_caller && body_.caller_slot < 0 && !found_caller) fail("a macro's caller has no place");
  Value kwargs, varargs;
  if (body_.kwargs_slot >= 0) {
    Dict::Entries entries;
    for (auto& [name, value] : arguments.named) entries.emplace_back(text(name), std::move(value));
    kwargs = dict(std::move(entries));
  } else if (!arguments.named.empty()) {
    fail(fmt::format("macro '{}' takes no keyword argument '{}'", name_, arguments.named.front().first));
  }
  if (body_.varargs_slot >= 0) {
    varargs =
        tuple(given.size() > count ? Values(given.begin() + static_cast<std::ptrdiff_t>(count), given.end())
                                   : Values());
  } else if (given.size() > count) {
    fail(fmt::format("macro '{}' takes not more than {} argument(s)", name_, count));
  }
  return text(evaluator_.call_macro(body_, around_, context_, std::move(values), std::move(caller),
                                    std::move(kwargs), std::move(varargs)),
              session.autoescape);
}

// ---------------------------------------------------------------------------------------- loops

LoopValue::LoopValue(Evaluator& evaluator, const For& loop, ActivationPtr around, Value over,
                     IteratorPtr iterator, int depth)
    : Thing(sizeof(LoopValue)),
      evaluator_(evaluator),
      loop_(loop),
      around_(std::move(around)),
      over_(std::move(over)),
      iterator_(std::move(iterator)),
      depth_(depth) {}

bool LoopValue::next(Value& item) const {
  if (!after_.is_missing()) {
    item = std::exchange(after_, Value());
  } else if (!iterator_->next(item)) {
    return false;
  }
  ++index_;
  before_ = current_;
  current_ = item;
  return true;
}

bool LoopValue::peek() const {
  if (after_.is_missing() && !iterator_->next(after_)) after_ = Value();
  return !after_.is_missing();
}

std::optional<std::size_t> LoopValue::length() const {
  if (!length_) {
    const auto known = loop_.test ? std::nullopt : jinja::length(over_);
    if (known) {
      length_ = static_cast<std::int64_t>(*known);
    } else {
      Values rest;
      for (Value item; iterator_->next(item);) rest.push_back(item);
      length_ = static_cast<std::int64_t>(rest.size()) + index_ + 1 + (after_.is_missing() ? 0 : 1);
      iterator_ = values_iterator(std::move(rest));
    }
  }
  return static_cast<std::size_t>(*length_);
}

std::string LoopValue::represent() const {
  return fmt::format("<LoopContext {}/{}>", index_ + 1, *length());
}

IteratorPtr LoopValue::iterate() const {
  return std::make_unique<LoopIterator>(*this);
}

std::optional<Value> LoopValue::attribute(std::string_view name) const {
  const auto whole = [](std::int64_t number) { return Value::of_integer(number); };
  const auto size = [&] { return static_cast<std::int64_t>(*length()); };
  if (name == "index") return whole(index_ + 1);
  if (name == "index0") return whole(index_);
  if (name == "first") return Value::of_bool(index_ == 0);
  if (name == "last") return Value::of_bool(!peek());
  if (name == "length") return whole(size());
  if (name == "revindex") return whole(size() - index_);
  if (name == "revindex0") return whole(size() - index_ - 1);
  if (name == "depth") return whole(depth_ + 1);
  if (name == "depth0") return whole(depth_);
  if (name == "previtem") return index_ == 0 ? undefined("there is no previous item") : before_;
  if (name == "nextitem") return peek() ? after_ : undefined("there is no next item");
  const bool is_cycle = name == "cycle";
  if (!is_cycle && name != "changed") return std::nullopt;
  return make<BoundMethod>(Value(Type::object, shared_from_this()), is_cycle ? &loop_cycle : &loop_changed);
}

Value LoopValue::cycle(const Values& items) const {
  if (items.empty()) fail("no items for cycling given");
  return items[static_cast<std::size_t>(index_) % items.size()];
}

// What is remembered must not hold the loop itself.
bool LoopValue::changed(const Values& values) const {
  if (std::any_of(values.begin(), values.end(), holds_object)) fail("changed() takes plain data only");
  const Value now = tuple(values);
  if (!last_changed_.is_missing() && equal(last_changed_, now)) return false;
  last_changed_ = now;
  return true;
}

Value LoopValue::call(Session& session, Arguments& arguments) const {
  const Value over = bind("loop", arguments, {"iterable"}, 1)[0];
  if (!loop_.recursive) fail("the loop must have the 'recursive' marker to be called recursively");
  const Session::Call open(session);
  return text(evaluator_.run_recursive_loop(loop_, around_, over, {}, depth_ + 1), session.autoescape);
}

// ---------------------------------------------------------------------------------------- self

std::optional<Value> SelfValue::attribute(std::string_view name) const {
  const Block* block = evaluator_.block_named(name);
  if (block == nullptr) return std::nullopt;
  return make<BlockReference>(evaluator_, *block, context_);
}

}  // namespace assay::jinja
