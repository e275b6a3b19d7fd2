// Runs a parsed template.
#pragma once

#include <map>
#include <string>

#include "refimpl/jinja/ast.h"
#include "refimpl/jinja/session.h"
#include "refimpl/jinja/value.h"

namespace assay::jinja {

// The variables of a function that is being run, and of those around it.
struct Activation : Clearable {
  Activation(std::size_t count, std::shared_ptr<Activation> around);
  ~Activation() override;
  void clear() override { slots.clear(), outer.reset(); }
  Values slots;
  std::shared_ptr<Activation> outer;
  bool kept = false;  // by the session, since a macro may outlive the call
};
using ActivationPtr = std::shared_ptr<Activation>;

// What the template was given, and what it has assigned at its top: blocks see both.
using Context = std::map<std::string, Value, std::less<>>;

class Evaluator {
 public:
  Evaluator(Session& session, const Program& program, Context context);

  // Throws Error::input without a place; the place is line().
  std::string run();
  int line() const { return line_; }

  // ---- for macros, loops and blocks, which are called from expressions
  std::string call_macro(const MacroBody& macro, const ActivationPtr& around, Context& context, Values values,
                         Value caller, Value kwargs, Value varargs);
  std::string run_recursive_loop(const For& loop, const ActivationPtr& around, const Value& over,
                                 const Value& self, int depth);
  std::string run_block(const Block& block, Context& context);
  const Block* block_named(std::string_view name) const;
  Session& session() { return session_; }

 private:
  enum class Flow { onward, leave, again };  // behind a statement; `break`; `continue`
  class Running;                             // a function that is being run: its variables, its output

  // ---- statements
  Flow execute(const Statements& body);
  Flow execute(const Statement& statement);
  Flow run_statement(const Output& output);
  Flow run_statement(const For& loop);
  Flow run_statement(const If& node);
  Flow run_statement(const Macro& macro);
  Flow run_statement(const CallBlock& block);
  Flow run_statement(const FilterBlock& block);
  Flow run_statement(const With& with);
  Flow run_statement(const Set& set);
  Flow run_statement(const SetBlock& set);
  Flow run_statement(const Autoescape& tag);
  Flow run_statement(const Block& block);
  Flow run_statement(const Break&) { return Flow::leave; }
  Flow run_statement(const Continue&) { return Flow::again; }
  Flow run_statement(const OtherTemplate& other);
  Flow loop_over(const For& loop, const Value& over, const Value& self, int depth);
  IteratorPtr tested(const For& loop, const Value& over);
  std::string captured(const Statements& body, Flow& flow);

  void put(const Value& value);
  void put_block_result(const Value& value);
  void enter(const Loads& loads);
  void leave(const Loads& loads);
  void assign(const Expression& target, const Value& value);
  void require_namespaces(const std::vector<Variable>& variables);
  void export_names(const Exports& exports);
  Value& at(const Variable& variable);
  Value macro_value(const MacroBody& body, std::string name, bool named);

  // ---- expressions
  Value evaluate(const Expression& expression);
  Value evaluate_or(const ExpressionPtr& expression, Value otherwise);
  Value value_of(const TemplateData& data);
  Value value_of(const Constant& constant) { return constant.value; }
  Value value_of(const Name& name);
  Value value_of(const NamespaceTarget&);
  Value value_of(const TupleOf& node) { return tuple(all(node.items)); }
  Value value_of(const ListOf& node) { return list(all(node.items)); }
  Value value_of(const DictOf& node);
  Value value_of(const Unary& node);
  Value value_of(const Binary& node);
  Value value_of(const Concatenation& node);
  Value value_of(const Comparison& node);
  Value value_of(const Conditional& node);
  Value value_of(const Filtered& node);
  Value value_of(const Tested& node);
  Value value_of(const Call& node);
  Value value_of(const AttributeOf& node);
  Value value_of(const ItemOf& node);
  Value value_of(const SliceOf& node);
  Values all(const Expressions& expressions);
  Arguments arguments(const CallArguments& given);
  Value call(const Value& callee, Arguments arguments);

  Session& session_;
  const Program& program_;
  Context context_;
  Context* visible_;       // the context of the block that is being run
  ActivationPtr current_;  // the function that is being run
  Buffer* out_ = nullptr;
  const Value* filtered_ = nullptr;  // the text of the block that a filter is applied to
  int line_ = 0;
};

}  // namespace assay::jinja
