// A parsed template. Names know where their variables lie once scopes.h has gone over it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "refimpl/jinja/value.h"

namespace assay::jinja {

// A variable lives in a function's activation: the template, a block, a macro, a recursive loop. `hops` functions
// further out than the one that is running.
struct Variable {
  int hops = 0, slot = -1;
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
using Expressions = std::vector<ExpressionPtr>;

struct CallArguments {
  Expressions positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr more_positional, more_named;  // *x, **x
};

struct TemplateData {
  Value text;
};
struct Constant {
  Value value;
};
enum class NameUse : std::uint8_t { load, store, parameter };
struct Name {
  std::string name;
  NameUse use = NameUse::load;
  Variable where;
};
struct NamespaceTarget {  // ns.attribute, on the left of =
  std::string name, attribute;
  Variable where;
};
struct TupleOf {
  Expressions items;
};
struct ListOf {
  Expressions items;
};
struct DictOf {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
};
struct Unary {
  enum class Sign : std::uint8_t { plus, minus, inverse } sign;
  ExpressionPtr of;
};
struct Binary {
  Operator op;
  ExpressionPtr left, right;
};
struct Concatenation {
  Expressions parts;
};
struct Comparison {
  enum class Kind : std::uint8_t { equal, unequal, less, less_equal, greater, greater_equal, in, not_in };
  ExpressionPtr first;
  std::vector<std::pair<Kind, ExpressionPtr>> more;
};
struct Conditional {
  ExpressionPtr test, then, otherwise;  // otherwise may be missing
};
struct Filtered {
  ExpressionPtr subject;  // none: the text of the block around it
  std::string name;
  CallArguments arguments;
};
struct Tested {
  ExpressionPtr subject;
  std::string name;
  CallArguments arguments;
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct AttributeOf {
  ExpressionPtr of;
  std::string name;
};
struct ItemOf {
  ExpressionPtr of, key;
};
struct SliceOf {
  ExpressionPtr start, stop, step;  // each may be missing
};

struct Expression {
  using Kind = std::variant<TemplateData, Constant, Name, NamespaceTarget, TupleOf, ListOf, DictOf, Unary,
                            Binary, Concatenation, Comparison, Conditional, Filtered, Tested, Call,
                            AttributeOf, ItemOf, SliceOf>;
  int line = 0;
  int depth = 1;  // of expressions within
  Kind is;
};

// ---- statements

struct Statement;
using StatementPtr = std::unique_ptr<Statement>;
using Statements = std::vector<StatementPtr>;

// What a frame's variables hold when it is entered.
struct Load {
  enum class From : std::uint8_t { parameter, context, variable, nothing } from;
  int slot;
  std::string name;  // of the context
  Variable variable;
};
using Loads = std::vector<Load>;

// The body of something that is called, or of the template itself.
struct Function {
  int slots = 0;
  Loads loads;
};

struct Output {
  Expressions parts;
};
struct For {
  ExpressionPtr target, over, test;
  Statements body, otherwise;
  bool recursive = false;

  int loop_slot = -1;  // of the variable `loop`, where the body looks at it
  Loads body_loads, else_loads, test_loads;
  ExpressionPtr test_target;  // the target again, in the frame of the test
  Function function;          // of a recursive loop
};
struct If {
  struct Branch {
    ExpressionPtr test;
    Statements body;
  };
  std::vector<Branch> branches;
  Statements otherwise;
};
struct MacroBody {
  std::vector<std::string> parameters;
  Expressions names;     // the parameters as names
  Expressions defaults;  // of the last of them
  Statements body;

  Function function;
  std::vector<int> parameter_slots;
  bool accesses_caller = false;
  int caller_slot = -1, kwargs_slot = -1, varargs_slot = -1;  // where the body looks at them
};
struct Macro {
  std::string name;
  MacroBody body;
  Variable where;
  bool exported = false;
};
struct CallBlock {
  ExpressionPtr call;  // none: {% generation %}
  MacroBody body;
};
struct FilterBlock {
  ExpressionPtr filter;
  Statements body;
  Loads loads;
};
struct With {
  Expressions targets, values;
  Statements body;
  Loads loads;
};
using Exports = std::vector<std::pair<std::string, Variable>>;  // set at the top: blocks see them
struct Set {
  ExpressionPtr target, value;
  std::vector<Variable> namespaces;  // that the target wants to be some
  Exports exports;
};
struct SetBlock {
  ExpressionPtr target, filter;  // filter may be missing
  Statements body;
  Loads loads;
  Exports exports;
};
struct Autoescape {
  ExpressionPtr on;
  Statements body;
  Loads loads;
};
struct Block {
  std::string name;
  bool scoped = false, required = false;
  Statements body;
  Exports visible;  // the variables that a scoped block sees
  Function function;
  int self_slot = -1, super_slot = -1;
};
struct Break {};
struct Continue {};
struct OtherTemplate {  // extends, include, import: there is none to be found
  std::string tag;
  ExpressionPtr name;
  std::vector<std::string> targets;
};

struct Statement {
  using Kind = std::variant<Output, For, If, Macro, CallBlock, FilterBlock, With, Set, SetBlock, Autoescape,
                            Block, Break, Continue, OtherTemplate>;
  int line = 0;
  Kind is;
};

struct Program {
  Statements body;
  Function function;
  int self_slot = -1;
  std::vector<Block*> blocks;
};

}  // namespace assay::jinja
