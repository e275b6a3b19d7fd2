// The expressions and statements directly within one, in the order in which Jinja visits them.
#pragma once

#include <type_traits>
#include <variant>

#include "refimpl/jinja/ast.h"

namespace assay::jinja {

template <class Visit>
void for_each_child(CallArguments& arguments, Visit visit) {
  for (auto& each : arguments.positional) visit(*each);
  for (auto& each : arguments.named) visit(*each.second);
  if (arguments.more_positional) visit(*arguments.more_positional);
  if (arguments.more_named) visit(*arguments.more_named);
}

template <class Visit>
void for_each_child(Expression& expression, Visit visit) {
  const auto one = [&](const ExpressionPtr& child) {
    if (child) visit(*child);
  };
  const auto all = [&](const Expressions& children) {
    for (const auto& child : children) visit(*child);
  };
  std::visit(
      [&](auto& node) {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, TupleOf> || std::is_same_v<Node, ListOf>) {
          all(node.items);
        } else if constexpr (std::is_same_v<Node, DictOf>) {
          for (const auto& [key, value] : node.items) visit(*key), visit(*value);
        } else if constexpr (std::is_same_v<Node, Unary> || std::is_same_v<Node, AttributeOf>) {
          one(node.of);
        } else if constexpr (std::is_same_v<Node, Binary>) {
          one(node.left), one(node.right);
        } else if constexpr (std::is_same_v<Node, Concatenation>) {
          all(node.parts);
        } else if constexpr (std::is_same_v<Node, Comparison>) {
          one(node.first);
          for (const auto& each : node.more) visit(*each.second);
        } else if constexpr (std::is_same_v<Node, Conditional>) {
          one(node.test), one(node.then), one(node.otherwise);
        } else if constexpr (std::is_same_v<Node, Filtered> || std::is_same_v<Node, Tested>) {
          one(node.subject);
          for_each_child(node.arguments, visit);
        } else if constexpr (std::is_same_v<Node, Call>) {
          one(node.callee);
          for_each_child(node.arguments, visit);
        } else if constexpr (std::is_same_v<Node, ItemOf>) {
          one(node.of), one(node.key);
        } else if constexpr (std::is_same_v<Node, SliceOf>) {
          one(node.start), one(node.stop), one(node.step);
        }
      },
      expression.is);
}

// Calls expression(Expression&) and statement(Statement&).
template <class OnExpression, class OnStatement>
void for_each_part(MacroBody& body, OnExpression expression, OnStatement statement) {
  for (auto& name : body.names) expression(*name);
  for (auto& value : body.defaults) expression(*value);
  for (auto& each : body.body) statement(*each);
}

template <class OnExpression, class OnStatement>
void for_each_part(Statement& of, OnExpression expression, OnStatement statement) {
  const auto one = [&](const ExpressionPtr& child) {
    if (child) expression(*child);
  };
  const auto all = [&](const Statements& children) {
    for (const auto& child : children) statement(*child);
  };
  std::visit(
      [&](auto& node) {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, Output>) {
          for (const auto& part : node.parts) expression(*part);
        } else if constexpr (std::is_same_v<Node, For>) {
          one(node.target), one(node.over), all(node.body), all(node.otherwise), one(node.test);
        } else if constexpr (std::is_same_v<Node, If>) {
          for (const auto& branch : node.branches) one(branch.test), all(branch.body);
          all(node.otherwise);
        } else if constexpr (std::is_same_v<Node, Macro>) {
          for_each_part(node.body, expression, statement);
        } else if constexpr (std::is_same_v<Node, CallBlock>) {
          one(node.call);
          for_each_part(node.body, expression, statement);
        } else if constexpr (std::is_same_v<Node, FilterBlock>) {
          all(node.body), one(node.filter);
        } else if constexpr (std::is_same_v<Node, With>) {
          for (const auto& target : node.targets) expression(*target);
          for (const auto& value : node.values) expression(*value);
          all(node.body);
        } else if constexpr (std::is_same_v<Node, Set>) {
          one(node.target), one(node.value);
        } else if constexpr (std::is_same_v<Node, SetBlock>) {
          one(node.target), one(node.filter), all(node.body);
        } else if constexpr (std::is_same_v<Node, Autoescape>) {
          one(node.on), all(node.body);
        } else if constexpr (std::is_same_v<Node, Block>) {
          all(node.body);
        } else if constexpr (std::is_same_v<Node, OtherTemplate>) {
          one(node.name);
        }
      },
      of.is);
}

}  // namespace assay::jinja
