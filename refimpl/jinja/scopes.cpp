#include "refimpl/jinja/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "refimpl/jinja/children.h"
#include "refimpl/jinja/filters.h"
#include "refimpl/jinja/lexer.h"
#include "refimpl/jinja/symbols.h"
#include "refimpl/jinja/tests.h"

namespace assay::jinja {
namespace {

// What holds at a place of the template.
struct Frame {
  Symbols* symbols = nullptr;
  bool soft = false;      // inside an `if`: an unknown filter is an error only when it is used
  bool toplevel = false;  // its assignments are seen by blocks
  bool in_loop = false;   // `break` has something to leave

  Frame inner(Symbols& own) const { return {&own, false, false, in_loop}; }
  Frame function(Symbols& own) const { return {&own, false, false, false}; }
  Frame softer() const { return {symbols, true, toplevel, in_loop}; }
};

class Resolver {
 public:
  explicit Resolver(Program& program) : program_(program) {}

  void run() {
    find_blocks(program_.body);
    Symbols root(program_.function);
    if (looks_at("self", program_.body)) program_.self_slot = root.declare("self");
    root.visit(program_.body);
    Frame frame{&root, false, true, false};
    resolve(program_.body, frame);
    program_.function.loads = root.loads();
    for (Block* block : program_.blocks) resolve_block(*block);
  }

 private:
  void find_blocks(Statements& body) {
    for (auto& statement : body) find_blocks(*statement);
  }
  void find_blocks(Statement& statement) {
    if (auto* block = std::get_if<Block>(&statement.is)) {
      const bool again = std::any_of(program_.blocks.begin(), program_.blocks.end(),
                                     [&](const Block* other) { return other->name == block->name; });
      if (again) fail_at(statement.line, fmt::format("block '{}' defined twice", block->name));
      program_.blocks.push_back(block);
    }
    for_each_part(
        statement, [](Expression&) {}, [&](Statement& each) { find_blocks(each); });
  }

  // A block is a function by itself: it sees the context, and of the variables around it those that it is given.
  void resolve_block(Block& block) {
    Symbols own(block.function);
    if (looks_at("self", block.body)) block.self_slot = own.declare("self");
    if (looks_at("super", block.body)) block.super_slot = own.declare("super");
    own.visit(block.body);
    Frame frame{&own, false, false, false};
    resolve(block.body, frame);
    block.function.loads = own.loads();
  }

  void resolve(Statements& body, const Frame& frame) {
    for (auto& statement : body) {
      line_ = statement->line;
      std::visit([&](auto& node) { resolve(node, frame); }, statement->is);
    }
  }
  void resolve(Expressions& all, const Frame& frame) {
    for (auto& each : all) resolve(*each, frame);
  }

  // ---- expressions

  void resolve(const ExpressionPtr& expression, const Frame& frame) {
    if (expression) resolve(*expression, frame);
  }

  void resolve(Expression& expression, const Frame& frame) {
    if (auto* name = std::get_if<Name>(&expression.is)) {
      name->where = frame.symbols->find(name->name, expression.line);
    } else if (auto* target = std::get_if<NamespaceTarget>(&expression.is)) {
      target->where = frame.symbols->find(target->name, expression.line);
    } else if (auto* filtered = std::get_if<Filtered>(&expression.is)) {
      if (!frame.soft && !is_filter(filtered->name))
        fail_at(expression.line, fmt::format("no filter is named '{}'", filtered->name));
    } else if (auto* tested = std::get_if<Tested>(&expression.is)) {
      if (!frame.soft && !is_test(tested->name))
        fail_at(expression.line, fmt::format("no test is named '{}'", tested->name));
    }
    const bool soft = std::holds_alternative<Conditional>(expression.is);
    const Frame inside = soft ? frame.softer() : frame;
    for_each_child(expression, [&](Expression& child) { resolve(child, inside); });
  }

  // ---- statements

  void resolve(Output& output, const Frame& frame) { resolve(output.parts, frame); }

  void resolve(If& node, const Frame& frame) {
    const Frame inside = frame.softer();
    for (auto& branch : node.branches) {
      resolve(branch.test, inside);
      resolve(branch.body, inside);
    }
    resolve(node.otherwise, inside);
  }

  void resolve(For& loop, const Frame& frame) {
    refuse_assigned_loop(loop);
    resolve(loop.over, frame);
    // A recursive loop is a function, which its body may call.
    std::optional<Symbols> place;
    if (loop.recursive) place.emplace(*frame.symbols, loop.function);
    Symbols& outer = loop.recursive ? *place : *frame.symbols;
    Symbols body(outer), otherwise(outer), test(outer);
    if (loop.recursive || looks_at("loop", loop.body) || has_scoped_block(loop.body))
      loop.loop_slot = body.declare("loop");
    body.visit_parameter(*loop.target);
    body.visit(loop.body);
    otherwise.visit(loop.otherwise);
    if (loop.test) {
      test.visit_parameter(*loop.test_target);
      test.visit(*loop.test);
      const Frame tested = frame.inner(test);
      resolve(loop.test_target, tested);
      resolve(loop.test, tested);
      loop.test_loads = test.loads();
    }
    Frame inside = frame.inner(body);
    inside.in_loop = true;
    resolve(loop.target, inside);
    resolve(loop.body, inside);
    loop.body_loads = body.loads();
    Frame after = frame.inner(otherwise);
    if (loop.recursive) after.in_loop = false;
    resolve(loop.otherwise, after);
    loop.else_loads = otherwise.loads();
  }

  void resolve(MacroBody& macro, const Frame& frame, int line) {
    Symbols own(*frame.symbols, macro.function);
    for (auto& name : macro.names) own.visit_parameter(*name);
    const bool has_caller = is_parameter(macro, "caller");
    if (looks_at("caller", macro.body)) {
      if (!has_caller) {
        macro.caller_slot = own.declare("caller");
      } else if (!has_default(macro, "caller")) {
        fail_at(line, "the parameter 'caller' of a macro has to have a default");
      }
      macro.accesses_caller = true;
    }
    if (looks_at("kwargs", macro.body) && !is_parameter(macro, "kwargs"))
      macro.kwargs_slot = own.declare("kwargs");
    if (looks_at("varargs", macro.body) && !is_parameter(macro, "varargs"))
      macro.varargs_slot = own.declare("varargs");
    for (auto& value : macro.defaults) own.visit(*value);
    own.visit(macro.body);
    const Frame inside = frame.function(own);
    for (auto& name : macro.names) {
      resolve(name, inside);
      macro.parameter_slots.push_back(std::get<Name>(name->is).where.slot);
    }
    resolve(macro.defaults, inside);
    resolve(macro.body, inside);
    macro.function.loads = own.loads();
  }

  void resolve(Macro& macro, const Frame& frame) {
    const int line = line_;
    resolve(macro.body, frame, line);
    macro.where = frame.symbols->find(macro.name, line);
    macro.exported = frame.toplevel;
  }

  void resolve(CallBlock& block, const Frame& frame) {
    resolve(block.body, frame, line_);
    resolve(block.call, frame);
  }

  void resolve(FilterBlock& block, const Frame& frame) {
    Symbols own(*frame.symbols);
    own.visit(block.body);
    own.visit(*block.filter);
    const Frame inside = frame.inner(own);
    resolve(block.body, inside);
    resolve(block.filter, inside);
    block.loads = own.loads();
  }

  void resolve(With& with, const Frame& frame) {
    Symbols own(*frame.symbols);
    for (auto& target : with.targets) own.visit_parameter(*target);
    own.visit(with.body);
    const Frame inside = frame.inner(own);
    resolve(with.targets, inside);
    resolve(with.values, frame);
    resolve(with.body, inside);
    with.loads = own.loads();
  }

  void resolve(Set& set, const Frame& frame) {
    resolve(set.target, frame);
    resolve(set.value, frame);
    find_namespaces(*set.target, set.namespaces);
    if (frame.toplevel) find_exports(*set.target, set.exports);
  }

  void resolve(SetBlock& set, const Frame& frame) {
    Symbols own(*frame.symbols);
    own.visit(set.body);
    const Frame inside = frame.inner(own);
    resolve(set.body, inside);
    resolve(set.filter, inside);
    resolve(set.target, frame);
    if (frame.toplevel) find_exports(*set.target, set.exports);
    set.loads = own.loads();
  }

  void resolve(Autoescape& tag, const Frame& frame) {
    Symbols own(*frame.symbols);
    own.visit(*tag.on);
    own.visit(tag.body);
    const Frame inside = frame.inner(own);
    resolve(tag.on, inside);
    resolve(tag.body, inside);
    tag.loads = own.loads();
  }

  void resolve(Block& block, const Frame& frame) {
    if (block.scoped) block.visible = frame.symbols->stored();
  }

  void resolve(OtherTemplate& other, const Frame& frame) { resolve(other.name, frame); }
  void resolve(Break&, const Frame& frame) { require_loop("break", frame); }
  void resolve(Continue&, const Frame& frame) { require_loop("continue", frame); }

  void require_loop(std::string_view tag, const Frame& frame) const {
    if (!frame.in_loop) fail_at(line_, fmt::format("'{}' outside of a loop", tag));
  }

  // ---- what a tree holds

  static bool is_parameter(const MacroBody& macro, std::string_view name) {
    return std::find(macro.parameters.begin(), macro.parameters.end(), name) != macro.parameters.end();
  }
  static bool has_default(const MacroBody& macro, std::string_view name) {
    const auto at =
        std::find(macro.parameters.begin(), macro.parameters.end(), name) - macro.parameters.begin();
    return static_cast<std::size_t>(at) + macro.defaults.size() >= macro.parameters.size();
  }

  static void find_namespaces(Expression& target, std::vector<Variable>& found) {
    if (auto* ns = std::get_if<NamespaceTarget>(&target.is)) found.push_back(ns->where);
    for_each_child(target, [&](Expression& child) { find_namespaces(child, found); });
  }
  static void find_exports(Expression& target, Exports& found) {
    if (auto* name = std::get_if<Name>(&target.is)) found.emplace_back(name->name, name->where);
    for_each_child(target, [&](Expression& child) { find_exports(child, found); });
  }

  static bool has_scoped_block(Statements& body) {
    bool found = false;
    for (auto& each : body) {
      const auto* block = std::get_if<Block>(&each->is);
      found = found || (block != nullptr && block->scoped);
      for_each_part(
          *each, [](Expression&) {},
          [&](Statement& inner) {
            const auto* nested = std::get_if<Block>(&inner.is);
            found = found || (nested != nullptr && nested->scoped);
          });
    }
    return found;
  }

  void refuse_assigned_loop(For& loop) const {
    const auto check = [](auto& self, Expression& expression) -> void {
      const auto* name = std::get_if<Name>(&expression.is);
      if (name != nullptr && name->use == NameUse::store && name->name == "loop")
        fail_at(expression.line, "the variable 'loop' cannot be assigned to inside a loop");
      for_each_child(expression, [&](Expression& child) { self(self, child); });
    };
    const auto walk = [&](auto& self, Statement& statement) -> void {
      for_each_part(
          statement, [&](Expression& each) { check(check, each); },
          [&](Statement& each) { self(self, each); });
    };
    check(check, *loop.target);
    for (auto& each : loop.body) walk(walk, *each);
    for (auto& each : loop.otherwise) walk(walk, *each);
  }

  Program& program_;
  int line_ = 0;
};

}  // namespace

void resolve_scopes(Program& program) {
  Resolver(program).run();
}

}  // namespace assay::jinja
