// Expressions.
#include <fmt/format.h>

#include "refimpl/jinja/evaluator.h"
#include "refimpl/jinja/filters.h"
#include "refimpl/jinja/methods.h"
#include "refimpl/jinja/tests.h"
#include "refimpl/jinja/things.h"

namespace assay::jinja {
namespace {

bool compares(Comparison::Kind kind, const Value& a, const Value& b) {
  switch (kind) {
    case Comparison::Kind::equal: return equal(a, b);
    case Comparison::Kind::unequal: return !equal(a, b);
    case Comparison::Kind::less: return less(a, b);
    case Comparison::Kind::less_equal: return less_or_equal(a, b);
    case Comparison::Kind::greater: return less(b, a);
    case Comparison::Kind::greater_equal: return less_or_equal(b, a);
    case Comparison::Kind::in: return contains(b, a);
    case Comparison::Kind::not_in: return !contains(b, a);
  }
  return false;
}

}  // namespace

Value Evaluator::evaluate(const Expression& expression) {
  line_ = expression.line;
  session_.work(1);
  session_.check_stack();
  return std::visit([&](const auto& node) { return value_of(node); }, expression.is);
}

Value Evaluator::evaluate_or(const ExpressionPtr& expression, Value otherwise) {
  return expression ? evaluate(*expression) : std::move(otherwise);
}

Value Evaluator::value_of(const TemplateData& data) {
  return data.text;
}

Value Evaluator::value_of(const Name& name) {
  const Value& value = at(name.where);
  return value.is_missing() ? undefined(fmt::format("'{}' is undefined", name.name)) : value;
}

Value Evaluator::value_of(const NamespaceTarget&) {
  fail("an assignment's target is no value");
}

Value Evaluator::value_of(const DictOf& node) {
  Dict::Entries entries;
  for (const auto& [key, value] : node.items) {
    Value made_key = evaluate(*key);
    entries.emplace_back(std::move(made_key), evaluate(*value));
  }
  return dict(std::move(entries));
}

Value Evaluator::value_of(const Unary& node) {
  const Value value = evaluate(*node.of);
  switch (node.sign) {
    case Unary::Sign::plus: return unchanged(value);
    case Unary::Sign::minus: return negated(value);
    case Unary::Sign::inverse: return Value::of_bool(!truth(value));
  }
  return {};
}

Value Evaluator::value_of(const Binary& node) {
  Value left = evaluate(*node.left);
  if (node.op == Operator::both) return truth(left) ? evaluate(*node.right) : left;
  if (node.op == Operator::either) return truth(left) ? left : evaluate(*node.right);
  return compute(node.op, left, evaluate(*node.right));
}

Value Evaluator::value_of(const Concatenation& node) {
  const Values parts = all(node.parts);
  Buffer out;
  if (!session_.joins_markup) {
    for (const Value& part : parts) out.append(write(part));
    return text(out.take());
  }
  // As markupsafe joins: once one part is safe, the others are escaped.
  Value joined = text("");
  bool safe = false;
  for (const Value& part : parts) safe = safe || is_safe(part);
  if (safe) joined = safe_text("");
  for (const Value& part : parts)
    joined = compute(Operator::add, joined, part.is_text() ? part : text(write(part)));
  return joined;
}

Value Evaluator::value_of(const Comparison& node) {
  Value left = evaluate(*node.first);
  for (const auto& [kind, expression] : node.more) {
    Value right = evaluate(*expression);
    if (!compares(kind, left, right)) return Value::of_bool(false);
    left = std::move(right);
  }
  return Value::of_bool(true);
}

Value Evaluator::value_of(const Conditional& node) {
  if (truth(evaluate(*node.test))) return evaluate(*node.then);
  if (node.otherwise) return evaluate(*node.otherwise);
  return undefined("the inline if-expression evaluated to false and no else section was defined.");
}

Value Evaluator::value_of(const Filtered& node) {
  const Value subject = node.subject ? evaluate(*node.subject) : *filtered_;
  const Arguments given = arguments(node.arguments);
  line_ = node.subject ? node.subject->line : line_;
  return call_filter(session_, node.name, subject, given);
}

Value Evaluator::value_of(const Tested& node) {
  const Value subject = evaluate(*node.subject);
  return Value::of_bool(call_test(session_, node.name, subject, arguments(node.arguments)));
}

Value Evaluator::value_of(const Call& node) {
  const Value callee = evaluate(*node.callee);
  return call(callee, arguments(node.arguments));
}

Value Evaluator::call(const Value& callee, Arguments given) {
  if (callee.is_undefined()) fail(static_cast<const Undefined*>(callee.object())->message);
  if (!callee.is(Type::object)) fail(fmt::format("'{}' object is not callable", type_name(callee)));
  return callee.thing().call(session_, given);
}

Value Evaluator::value_of(const AttributeOf& node) {
  return get_attribute(evaluate(*node.of), node.name);
}

Value Evaluator::value_of(const ItemOf& node) {
  const Value of = evaluate(*node.of);
  if (const auto* part = std::get_if<SliceOf>(&node.key->is)) {
    const Value start = evaluate_or(part->start, Value::none());
    const Value stop = evaluate_or(part->stop, Value::none());
    return slice(of, start, stop, evaluate_or(part->step, Value::none()));
  }
  return get_item(of, evaluate(*node.key));
}

Value Evaluator::value_of(const SliceOf& node) {
  Value start = evaluate_or(node.start, Value::none()), stop = evaluate_or(node.stop, Value::none());
  return make<SliceValue>(std::move(start), std::move(stop), evaluate_or(node.step, Value::none()));
}

Values Evaluator::all(const Expressions& expressions) {
  Values values;
  values.reserve(expressions.size());
  for (const auto& each : expressions) values.push_back(evaluate(*each));
  return values;
}

Arguments Evaluator::arguments(const CallArguments& given) {
  Arguments made;
  made.positional = all(given.positional);
  if (given.more_positional) {
    const Value more = evaluate(*given.more_positional);
    for (Value& each : collect(more)) made.positional.push_back(std::move(each));
  }
  for (const auto& [name, value] : given.named) made.named.emplace_back(name, evaluate(*value));
  if (given.more_named) {
    const Value more = evaluate(*given.more_named);
    if (!more.is_dict()) fail(fmt::format("argument after ** must be a mapping, not {}", type_name(more)));
    for (const auto& [key, value] : more.as_dict().entries) {
      if (!key.is_text()) fail("keywords must be strings");
      for (const auto& other : made.named) {
        if (other.first == key.str())
          fail(fmt::format("got multiple values for keyword argument '{}'", other.first));
      }
      made.named.emplace_back(key.str(), value);
    }
  }
  return made;
}

}  // namespace assay::jinja
