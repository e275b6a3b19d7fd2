// Statements; expressions are in evaluate.cpp.
#include "refimpl/jinja/evaluator.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "refimpl/jinja/runtime_things.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

std::size_t activation_bytes(const Activation& activation) {
  return sizeof(Activation) + activation.slots.size() * sizeof(Value);
}

// The items that hold the test of {% for … if … %}, each when it is asked for.
class TestedIterator : public Iterator {
 public:
  TestedIterator(IteratorPtr of, std::function<bool(const Value&)> holds)
      : of_(std::move(of)), holds_(std::move(holds)) {}
  bool next(Value& item) override {
    while (of_->next(item)) {
      count_work(1);
      if (holds_(item)) return true;
    }
    return false;
  }

 private:
  IteratorPtr of_;
  std::function<bool(const Value&)> holds_;
};

}  // namespace

Activation::Activation(std::size_t count, std::shared_ptr<Activation> around)
    : slots(count), outer(std::move(around)) {
  if (Session::current() != nullptr) Session::current()->charge(activation_bytes(*this));
}

Activation::~Activation() {
  // Cleared ones keep what they were charged until the session ends, with which it does not matter.
  if (Session::current() != nullptr && !slots.empty()) Session::current()->refund(activation_bytes(*this));
}

// A function's variables and output, in place of those of its caller while it runs.
class Evaluator::Running {
 public:
  Running(Evaluator& evaluator, const Function& function, ActivationPtr around, Buffer& out)
      : evaluator_(evaluator),
        caller_(std::exchange(
            evaluator.current_,
            std::make_shared<Activation>(static_cast<std::size_t>(function.slots), std::move(around)))),
        caller_out_(std::exchange(evaluator.out_, &out)) {
    evaluator.session_.check_stack();
  }
  ~Running() {
    evaluator_.current_ = std::move(caller_);
    evaluator_.out_ = caller_out_;
  }

 private:
  Evaluator& evaluator_;
  ActivationPtr caller_;
  Buffer* caller_out_;
};

Evaluator::Evaluator(Session& session, const Program& program, Context context)
    : session_(session), program_(program), context_(std::move(context)), visible_(&context_) {}

std::string Evaluator::run() {
  Buffer out;
  const Running running(*this, program_.function, nullptr, out);
  if (program_.self_slot >= 0) at({0, program_.self_slot}) = make<SelfValue>(*this, context_);
  enter(program_.function.loads);
  execute(program_.body);
  return out.take();
}

// ---------------------------------------------------------------------------------------- functions

std::string Evaluator::call_macro(const MacroBody& macro, const ActivationPtr& around, Context& context,
                                  Values values, Value caller, Value kwargs, Value varargs) {
  Buffer out;
  const Running running(*this, macro.function, around, out);
  Context* const outer_context = std::exchange(visible_, &context);
  enter(macro.function.loads);
  if (macro.caller_slot >= 0) at({0, macro.caller_slot}) = std::move(caller);
  if (macro.kwargs_slot >= 0) at({0, macro.kwargs_slot}) = std::move(kwargs);
  if (macro.varargs_slot >= 0) at({0, macro.varargs_slot}) = std::move(varargs);
  for (std::size_t i = 0; i < values.size(); ++i) at({0, macro.parameter_slots[i]}) = std::move(values[i]);
  const std::size_t without_default = macro.parameters.size() - macro.defaults.size();
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const Variable parameter = {0, macro.parameter_slots[i]};
    if (!at(parameter).is_missing()) continue;
    Value value = i >= without_default
                      ? evaluate(*macro.defaults[i - without_default])
                      : undefined(fmt::format("parameter '{}' was not provided", macro.parameters[i]));
    at(parameter) = std::move(value);
  }
  execute(macro.body);
  visible_ = outer_context;
  return out.take();
}

std::string Evaluator::run_recursive_loop(const For& loop, const ActivationPtr& around, const Value& over,
                                          const Value& self, int depth) {
  Buffer out;
  const Running running(*this, loop.function, around, out);
  loop_over(loop, over, self, depth);
  return out.take();
}

const Block* Evaluator::block_named(std::string_view name) const {
  for (const Block* block : program_.blocks) {
    if (block->name == name) return block;
  }
  return nullptr;
}

std::string Evaluator::run_block(const Block& block, Context& context) {
  const Session::Call open(session_);
  Buffer out;
  const Running running(*this, block.function, nullptr, out);
  Context* const outer_context = std::exchange(visible_, &context);
  enter(block.function.loads);
  if (block.self_slot >= 0) at({0, block.self_slot}) = make<SelfValue>(*this, context);
  if (block.super_slot >= 0)
    at({0, block.super_slot}) = undefined(fmt::format("there is no parent block called '{}'", block.name));
  execute(block.body);
  visible_ = outer_context;
  return out.take();
}

// ---------------------------------------------------------------------------------------- variables

Value& Evaluator::at(const Variable& variable) {
  Activation* activation = current_.get();
  for (int i = 0; i < variable.hops; ++i) activation = activation->outer.get();
  return activation->slots[static_cast<std::size_t>(variable.slot)];
}

void Evaluator::enter(const Loads& loads) {
  session_.work(1 + loads.size() / 4);
  for (const Load& load : loads) {
    Value value;
    if (load.from == Load::From::parameter) continue;
    if (load.from == Load::From::variable) value = at(load.variable);
    if (load.from == Load::From::context) {
      const auto found = visible_->find(load.name);
      if (found != visible_->end()) value = found->second;
    }
    at({0, load.slot}) = std::move(value);
  }
}

void Evaluator::leave(const Loads& loads) {
  for (const Load& load : loads) at({0, load.slot}) = Value();
}

void Evaluator::assign(const Expression& target, const Value& value) {
  if (const auto* name = std::get_if<Name>(&target.is)) {
    at(name->where) = value;
  } else if (const auto* ns = std::get_if<NamespaceTarget>(&target.is)) {
    const auto* holder = as<Namespace>(at(ns->where));
    if (holder == nullptr) fail("cannot assign attribute on non-namespace object");
    if (ns->attribute.starts_with('_'))
      fail(fmt::format("a namespace cannot hold the name '{}', which begins with an underscore",
                       ns->attribute));
    session_.work(1);
    session_.charge(sizeof(Value));  // a namespace grows by what is set, and lives as long as the session
    holder->set(ns->attribute, value);
  } else {
    const Expressions& targets = std::get<TupleOf>(target.is).items;
    if (iterate(value) == nullptr)
      fail(fmt::format("cannot unpack non-iterable {} object", type_name(value)));
    const Values items = collect(value);
    if (items.size() != targets.size())
      fail(fmt::format("{} values cannot be unpacked into {} names", items.size(), targets.size()));
    for (std::size_t i = 0; i < items.size(); ++i) assign(*targets[i], items[i]);
  }
}

void Evaluator::require_namespaces(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    if (as<Namespace>(at(variable)) == nullptr) fail("cannot assign attribute on non-namespace object");
  }
}

void Evaluator::export_names(const Exports& exports) {
  for (const auto& [name, variable] : exports) context_.insert_or_assign(name, at(variable));
}

Value Evaluator::macro_value(const MacroBody& body, std::string name, bool named) {
  if (!current_->kept) session_.keep(current_);
  current_->kept = true;
  return make<MacroValue>(*this, body, std::move(name), named, current_, *visible_);
}

// ---------------------------------------------------------------------------------------- statements

Evaluator::Flow Evaluator::execute(const Statements& body) {
  for (const auto& statement : body) {
    if (const Flow flow = execute(*statement); flow != Flow::onward) return flow;
  }
  return Flow::onward;
}

Evaluator::Flow Evaluator::execute(const Statement& statement) {
  line_ = statement.line;
  session_.work(1);
  session_.check_stack();
  return std::visit([&](const auto& node) { return run_statement(node); }, statement.is);
}

void Evaluator::put(const Value& value) {
  if (session_.autoescape && !is_safe(value)) return out_->append(escaped_for_html(write(value)));
  if (value.is_text()) return out_->append(value.str());
  out_->append(write(value));
}

// Of call and filter blocks, which Jinja puts into the output as it is.
void Evaluator::put_block_result(const Value& value) {
  if (!value.is_text()) fail(fmt::format("a block gives a {} where text is wanted", type_name(value)));
  out_->append(value.str());
}

Evaluator::Flow Evaluator::run_statement(const Output& output) {
  for (const auto& part : output.parts) {
    if (const auto* data = std::get_if<TemplateData>(&part->is)) {
      out_->append(data->text.str());
    } else {
      put(evaluate(*part));
    }
  }
  return Flow::onward;
}

Evaluator::Flow Evaluator::run_statement(const If& node) {
  for (const auto& branch : node.branches) {
    if (truth(evaluate(*branch.test))) return execute(branch.body);
  }
  return execute(node.otherwise);
}

Evaluator::Flow Evaluator::run_statement(const For& loop) {
  const Value over = evaluate(*loop.over);
  if (!loop.recursive) return loop_over(loop, over, {}, 0);
  if (!current_->kept) session_.keep(current_);  // the loop's object refers to it
  current_->kept = true;
  out_->append(run_recursive_loop(loop, current_, over, {}, 0));
  return Flow::onward;
}

IteratorPtr Evaluator::tested(const For& loop, const Value& over) {
  IteratorPtr items = iterate(over);
  if (items == nullptr) fail(fmt::format("'{}' object is not iterable", type_name(over)));
  if (!loop.test) return items;
  enter(loop.test_loads);
  return std::make_unique<TestedIterator>(std::move(items), [this, &loop](const Value& item) {
    assign(*loop.test_target, item);
    return truth(evaluate(*loop.test));
  });
}

// The part behind `else` runs where no round came to its end: also where each was left by `continue`.
Evaluator::Flow Evaluator::loop_over(const For& loop, const Value& over, const Value&, int depth) {
  IteratorPtr items;  // or the state has them
  std::shared_ptr<const LoopValue> state;
  if (loop.loop_slot >= 0) {
    const ActivationPtr around = loop.recursive ? current_->outer : nullptr;
    state = std::make_shared<const LoopValue>(*this, loop, around, over, tested(loop, over), depth);
  } else {
    items = tested(loop, over);
  }
  bool none_ended = true;
  Flow flow = Flow::onward;
  for (Value item; state ? state->next(item) : items->next(item);) {
    session_.work(1);
    assign(*loop.target, item);
    if (state) at({0, loop.loop_slot}) = Value(Type::object, state);
    enter(loop.body_loads);
    flow = execute(loop.body);
    if (flow == Flow::leave) break;
    if (flow == Flow::onward) none_ended = false;
  }
  leave(loop.body_loads);
  leave(loop.test_loads);
  if (loop.otherwise.empty() || !none_ended) return Flow::onward;
  enter(loop.else_loads);
  flow = execute(loop.otherwise);
  leave(loop.else_loads);
  return flow;
}

Evaluator::Flow Evaluator::run_statement(const Macro& macro) {
  Value value = macro_value(macro.body, macro.name, true);
  if (macro.exported) context_.insert_or_assign(macro.name, value);
  at(macro.where) = std::move(value);
  return Flow::onward;
}

Evaluator::Flow Evaluator::run_statement(const CallBlock& block) {
  Value caller = macro_value(block.body, "", false);
  if (!block.call) {  // {% generation %}
    put_block_result(call(caller, {}));
    return Flow::onward;
  }
  const auto& node = std::get<Call>(block.call->is);
  const Value callee = evaluate(*node.callee);
  Arguments given = arguments(node.arguments);
  for (const auto& named : given.named) {
    if (named.first == "caller") fail("a call block gives the argument 'caller' itself");
  }
  given.named.emplace_back("caller", std::move(caller));
  put_block_result(call(callee, std::move(given)));
  return Flow::onward;
}

// What `body` writes. A `break` in it leaves the loop around, and its text is lost.
std::string Evaluator::captured(const Statements& body, Flow& flow) {
  Buffer inner;
  Buffer* const outer = std::exchange(out_, &inner);
  try {
    flow = execute(body);
  } catch (...) {
    out_ = outer;
    throw;
  }
  out_ = outer;
  return inner.take();
}

Evaluator::Flow Evaluator::run_statement(const FilterBlock& block) {
  enter(block.loads);
  Flow flow = Flow::onward;
  const Value body = text(captured(block.body, flow), session_.autoescape);
  if (flow != Flow::onward) return flow;
  const Value* const outer = std::exchange(filtered_, &body);
  const Value result = evaluate(*block.filter);
  filtered_ = outer;
  put_block_result(result);
  leave(block.loads);
  return Flow::onward;
}

Evaluator::Flow Evaluator::run_statement(const With& with) {
  enter(with.loads);
  for (std::size_t i = 0; i < with.targets.size(); ++i) assign(*with.targets[i], evaluate(*with.values[i]));
  const Flow flow = execute(with.body);
  if (flow == Flow::onward) leave(with.loads);
  return flow;
}

Evaluator::Flow Evaluator::run_statement(const Set& set) {
  require_namespaces(set.namespaces);
  assign(*set.target, evaluate(*set.value));
  export_names(set.exports);
  return Flow::onward;
}

Evaluator::Flow Evaluator::run_statement(const SetBlock& set) {
  enter(set.loads);
  Flow flow = Flow::onward;
  Value value = text(captured(set.body, flow), session_.autoescape);
  if (flow != Flow::onward) return flow;
  if (set.filter) {
    const Value* const outer = std::exchange(filtered_, &value);
    Value result = evaluate(*set.filter);
    filtered_ = outer;
    value = session_.autoescape && !is_safe(result) ? safe_text(write(result)) : std::move(result);
  }
  assign(*set.target, value);
  export_names(set.exports);
  leave(set.loads);
  return Flow::onward;
}

Evaluator::Flow Evaluator::run_statement(const Autoescape& tag) {
  enter(tag.loads);
  const bool outer = session_.autoescape, outer_joins = session_.joins_markup;
  session_.autoescape = truth(evaluate(*tag.on));
  session_.joins_markup = session_.autoescape && std::holds_alternative<Constant>(tag.on->is);
  const Flow flow = execute(tag.body);
  session_.autoescape = outer;
  session_.joins_markup = outer_joins;
  return flow;
}

Evaluator::Flow Evaluator::run_statement(const Block& block) {
  if (block.required) fail(fmt::format("the required block '{}' is not found", block.name));
  if (!block.scoped) {
    out_->append(run_block(block, *visible_));
    return Flow::onward;
  }
  // A context of its own, which macros made in it may look at later: kept as long as they.
  struct Kept : Clearable {
    void clear() override { context.clear(); }
    Context context;
  };
  auto derived = std::make_shared<Kept>();
  derived->context = *visible_;
  session_.charge(derived->context.size() * 96);
  for (const auto& [name, variable] : block.visible) {
    if (!at(variable).is_missing()) derived->context.insert_or_assign(name, at(variable));
  }
  session_.keep(derived);
  out_->append(run_block(block, derived->context));
  return Flow::onward;
}

Evaluator::Flow Evaluator::run_statement(const OtherTemplate& other) {
  evaluate(*other.name);
  fail(fmt::format("'{}' wants another template, and a chat template has none beside it", other.tag));
}

}  // namespace assay::jinja
