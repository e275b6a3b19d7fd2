#include "refimpl/jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "refimpl/jinja/children.h"

namespace assay::jinja {
namespace {

constexpr int kDeepestNesting = 150;
constexpr int kDeepestExpression = 200;  // as Python's own parser

// A name on the left of = is stored to.
void mark(Expression& target, NameUse use) {
  if (auto* name = std::get_if<Name>(&target.is)) name->use = use;
  for_each_child(target, [&](Expression& child) { mark(child, use); });
}

bool can_be_assigned(const Expression& target) {
  if (std::holds_alternative<NamespaceTarget>(target.is)) return true;
  if (const auto* name = std::get_if<Name>(&target.is)) {
    static constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
    return std::find(std::begin(kConstants), std::end(kConstants), name->name) == std::end(kConstants);
  }
  const auto* items = std::get_if<TupleOf>(&target.is);
  return items != nullptr && std::all_of(items->items.begin(), items->items.end(),
                                         [](const ExpressionPtr& item) { return can_be_assigned(*item); });
}

std::optional<Comparison::Kind> comparison_of(std::string_view symbol) {
  using Kind = Comparison::Kind;
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"==", Kind::equal},         {"!=", Kind::unequal}, {">", Kind::greater},
      {">=", Kind::greater_equal}, {"<", Kind::less},     {"<=", Kind::less_equal}};
  for (const auto& [text, kind] : kKinds) {
    if (text == symbol) return kind;
  }
  return std::nullopt;
}

}  // namespace

ExpressionParser::Nested::Nested(ExpressionParser& parser) : parser_(parser) {
  if (parser.nesting_ >= kDeepestNesting)
    parser.fail_here(fmt::format("expressions or blocks are nested more than {} deep", kDeepestNesting));
  ++parser.nesting_;
}

void ExpressionParser::set_depth(Expression& made) const {
  int depth = 0;
  for_each_child(made, [&](Expression& child) { depth = std::max(depth, child.depth); });
  made.depth = depth + 1;
  if (made.depth > kDeepestExpression)
    fail_at(made.line, fmt::format("an expression is more than {} operations deep", kDeepestExpression));
}

// ---------------------------------------------------------------------------------------- the stream

Token ExpressionParser::next() {
  Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_symbol(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  next();
  return true;
}

void ExpressionParser::expected(std::string_view what) const {
  fail_here(fmt::format("expected '{}', got '{}'", what, describe(current())));
}

void ExpressionParser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) expected(symbol);
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) expected(name);
}

std::string ExpressionParser::expect_any_name() {
  if (!at(TokenType::name)) expected("a name");
  return next().text;
}

void ExpressionParser::expect(TokenType type, std::string_view shown) {
  if (!at(type)) expected(shown);
  next();
}

// ---------------------------------------------------------------------------------------- operators

ExpressionPtr ExpressionParser::expression(bool with_conditional) {
  const Nested nested(*this);
  return with_conditional ? conditional() : either();
}

ExpressionPtr ExpressionParser::conditional() {
  int line = current().line;
  ExpressionPtr then = either();
  while (skip_name("if")) {
    Conditional made;
    made.test = either();
    if (skip_name("else")) {
      const Nested nested(*this);
      made.otherwise = conditional();
    }
    made.then = std::move(then);
    then = node(line, std::move(made));
    line = current().line;
  }
  return then;
}

ExpressionPtr ExpressionParser::either() {
  int line = current().line;
  ExpressionPtr left = both();
  while (skip_name("or")) {
    left = node(line, Binary{Operator::either, std::move(left), both()});
    line = current().line;
  }
  return left;
}

ExpressionPtr ExpressionParser::both() {
  int line = current().line;
  ExpressionPtr left = inverse();
  while (skip_name("and")) {
    left = node(line, Binary{Operator::both, std::move(left), inverse()});
    line = current().line;
  }
  return left;
}

ExpressionPtr ExpressionParser::inverse() {
  if (!at_name("not")) return comparison();
  const Nested nested(*this);
  const int line = next().line;
  return node(line, Unary{Unary::Sign::inverse, inverse()});
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = current().line;
  Comparison made;
  made.first = sum();
  for (;;) {
    if (const auto kind = comparison_of(current().text); kind && at(TokenType::symbol)) {
      next();
      made.more.emplace_back(*kind, sum());
    } else if (skip_name("in")) {
      made.more.emplace_back(Comparison::Kind::in, sum());
    } else if (at_name("not") && is(ahead(), TokenType::name, "in")) {
      next(), next();
      made.more.emplace_back(Comparison::Kind::not_in, sum());
    } else {
      break;
    }
  }
  if (made.more.empty()) return std::move(made.first);
  return node(line, std::move(made));
}

ExpressionPtr ExpressionParser::sum() {
  int line = current().line;
  ExpressionPtr left = concatenation();
  while (at_symbol("+") || at_symbol("-")) {
    const Operator op = next().text == "+" ? Operator::add : Operator::subtract;
    left = node(line, Binary{op, std::move(left), concatenation()});
    line = current().line;
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  const int line = current().line;
  Concatenation made;
  made.parts.push_back(product());
  while (skip_symbol("~")) made.parts.push_back(product());
  if (made.parts.size() == 1) return std::move(made.parts.front());
  return node(line, std::move(made));
}

ExpressionPtr ExpressionParser::product() {
  int line = current().line;
  ExpressionPtr left = power();
  while (at_symbol("*") || at_symbol("/") || at_symbol("//") || at_symbol("%")) {
    const std::string sign = next().text;
    const Operator op = sign == "*"    ? Operator::multiply
                        : sign == "/"  ? Operator::divide
                        : sign == "//" ? Operator::floor_divide
                                       : Operator::modulo;
    left = node(line, Binary{op, std::move(left), power()});
    line = current().line;
  }
  return left;
}

// From left to right, unlike Python's; but a sign binds to its number first, so that -2 ** 2 is 4.
ExpressionPtr ExpressionParser::power() {
  int line = current().line;
  ExpressionPtr left = unary(true);
  while (skip_symbol("**")) {
    left = node(line, Binary{Operator::power, std::move(left), unary(true)});
    line = current().line;
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filter) {
  const int line = current().line;
  ExpressionPtr made;
  if (at_symbol("-") || at_symbol("+")) {
    const Nested nested(*this);
    const auto sign = next().text == "-" ? Unary::Sign::minus : Unary::Sign::plus;
    made = node(line, Unary{sign, unary(false)});
  } else {
    made = primary(false);
  }
  made = postfix(std::move(made));
  return with_filter ? filter_or_test(std::move(made)) : std::move(made);
}

// ---------------------------------------------------------------------------------------- behind a value

ExpressionPtr ExpressionParser::postfix(ExpressionPtr of) {
  for (;;) {
    const int line = current().line;
    if (at_symbol(".") || at_symbol("[")) {
      of = subscript(std::move(of));
    } else if (at_symbol("(")) {
      CallArguments arguments = call_arguments();
      of = node(line, Call{std::move(of), std::move(arguments)});
    } else {
      return of;
    }
  }
}

ExpressionPtr ExpressionParser::filter_or_test(ExpressionPtr of) {
  for (;;) {
    const int line = current().line;
    if (at_symbol("|")) {
      of = filters(std::move(of), false);
    } else if (at_name("is")) {
      of = test(std::move(of));
    } else if (at_symbol("(")) {
      CallArguments arguments = call_arguments();
      of = node(line, Call{std::move(of), std::move(arguments)});
    } else {
      return of;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr of) {
  const Token begin = next();
  if (begin.text == ".") {
    const Token name = next();
    if (name.type == TokenType::name) return node(begin.line, AttributeOf{std::move(of), name.text});
    if (name.type != TokenType::number || name.number.is(Type::real))
      fail_at(name.line, "expected a name or a number");
    ExpressionPtr key = node(name.line, Constant{name.number});
    return node(begin.line, ItemOf{std::move(of), std::move(key)});
  }
  TupleOf keys;
  while (!at_symbol("]")) {
    if (!keys.items.empty()) expect_symbol(",");
    keys.items.push_back(subscribed());
  }
  next();
  ExpressionPtr key =
      keys.items.size() == 1 ? std::move(keys.items.front()) : node(begin.line, std::move(keys));
  return node(begin.line, ItemOf{std::move(of), std::move(key)});
}

ExpressionPtr ExpressionParser::subscribed() {
  const int line = current().line;
  SliceOf slice;
  const auto part_follows = [&] { return !at_symbol(":") && !at_symbol("]") && !at_symbol(","); };
  if (!at_symbol(":")) {
    ExpressionPtr first = expression();
    if (!at_symbol(":")) return first;
    slice.start = std::move(first);
  }
  next();
  if (part_follows()) slice.stop = expression();
  if (skip_symbol(":") && !at_symbol("]") && !at_symbol(",")) slice.step = expression();
  return node(line, std::move(slice));
}

CallArguments ExpressionParser::call_arguments() {
  const Nested nested(*this);
  const int line = current().line;
  expect_symbol("(");
  CallArguments all;
  const auto ensure = [&](bool holds) {
    if (!holds) fail_at(line, "a call's arguments are not in the order that they have to be");
  };
  for (bool first = true; !at_symbol(")"); first = false) {
    if (!first) {
      expect_symbol(",");
      if (at_symbol(")")) break;
    }
    if (skip_symbol("*")) {
      ensure(!all.more_positional && !all.more_named);
      all.more_positional = expression();
    } else if (skip_symbol("**")) {
      ensure(!all.more_named);
      all.more_named = expression();
    } else if (at(TokenType::name) && is(ahead(), TokenType::symbol, "=")) {
      ensure(!all.more_named);
      std::string name = next().text;
      next();
      for (const auto& other : all.named) {
        if (other.first == name) fail_at(line, fmt::format("the argument {} is given twice", name));
      }
      all.named.emplace_back(std::move(name), expression());
    } else {
      ensure(!all.more_positional && !all.more_named && all.named.empty());
      all.positional.push_back(expression());
    }
  }
  next();
  return all;
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_any_name();
  while (skip_symbol(".")) name += "." + expect_any_name();
  return name;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr of, bool inline_start) {
  while (inline_start || at_symbol("|")) {
    if (!inline_start) next();
    inline_start = false;
    const int line = current().line;
    Filtered made;
    made.name = dotted_name();
    if (at_symbol("(")) made.arguments = call_arguments();
    made.subject = std::move(of);
    of = node(line, std::move(made));
  }
  return of;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr of) {
  const int line = next().line;
  const bool negated = skip_name("not");
  Tested made;
  made.name = dotted_name();
  const bool opens = at_symbol("[") || at_symbol("{");
  const bool value = at(TokenType::name) || at(TokenType::string) || at(TokenType::number) || opens;
  if (at_symbol("(")) {
    made.arguments = call_arguments();
  } else if (value && !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) fail_here("tests cannot be chained with 'is'");
    made.arguments.positional.push_back(postfix(primary(false)));
  }
  made.subject = std::move(of);
  ExpressionPtr result = node(line, std::move(made));
  return negated ? node(line, Unary{Unary::Sign::inverse, std::move(result)}) : std::move(result);
}

// ---------------------------------------------------------------------------------------- values

ExpressionPtr ExpressionParser::primary(bool with_namespace) {
  const Nested nested(*this);
  const Token token = current();
  if (token.type == TokenType::name) {
    next();
    if (token.text == "true" || token.text == "True") return node(token.line, Constant{Value::of_bool(true)});
    if (token.text == "false" || token.text == "False")
      return node(token.line, Constant{Value::of_bool(false)});
    if (token.text == "none" || token.text == "None") return node(token.line, Constant{Value::none()});
    if (with_namespace && skip_symbol("."))
      return node(token.line, NamespaceTarget{token.text, expect_any_name(), {}});
    return node(token.line, Name{token.text, NameUse::load, {}});
  }
  if (token.type == TokenType::string) {
    std::string joined;
    while (at(TokenType::string)) joined += next().text;
    return node(token.line, Constant{text(std::move(joined))});
  }
  if (token.type == TokenType::number) return node(token.line, Constant{next().number});
  if (at_symbol("(")) {
    next();
    ExpressionPtr inside = tuple({.in_parentheses = true});
    expect_symbol(")");
    return inside;
  }
  if (at_symbol("[")) return list_literal();
  if (at_symbol("{")) return dict_literal();
  fail_here(fmt::format("unexpected '{}'", describe(token)));
}

ExpressionPtr ExpressionParser::list_literal() {
  const int line = next().line;
  ListOf made;
  while (!at_symbol("]")) {
    if (!made.items.empty()) expect_symbol(",");
    if (at_symbol("]")) break;
    made.items.push_back(expression());
  }
  next();
  return node(line, std::move(made));
}

ExpressionPtr ExpressionParser::dict_literal() {
  const int line = next().line;
  DictOf made;
  while (!at_symbol("}")) {
    if (!made.items.empty()) expect_symbol(",");
    if (at_symbol("}")) break;
    ExpressionPtr key = expression();
    expect_symbol(":");
    made.items.emplace_back(std::move(key), expression());
  }
  next();
  return node(line, std::move(made));
}

bool ExpressionParser::tuple_ends(std::string_view end_name) const {
  return at(TokenType::variable_end) || at(TokenType::block_end) || at_symbol(")") ||
         (!end_name.empty() && at_name(end_name));
}

ExpressionPtr ExpressionParser::tuple(const TupleRules& rules) {
  int line = current().line;
  TupleOf made;
  bool is_tuple = false;
  for (;;) {
    if (!made.items.empty()) expect_symbol(",");
    if (tuple_ends(rules.end_name)) break;
    made.items.push_back(rules.simple ? primary(rules.with_namespace) : expression(rules.with_conditional));
    if (!at_symbol(",")) break;
    is_tuple = true;
    line = current().line;
  }
  if (!is_tuple && !made.items.empty()) return std::move(made.items.front());
  if (!is_tuple && !rules.in_parentheses)
    fail_here(fmt::format("expected an expression, got '{}'", describe(current())));
  return node(line, std::move(made));
}

ExpressionPtr ExpressionParser::target(const TargetRules& rules) {
  ExpressionPtr made =
      tuple({.simple = true, .end_name = rules.end_name, .with_namespace = rules.with_namespace});
  mark(*made, rules.use);
  if (!can_be_assigned(*made)) fail_at(made->line, "this cannot be assigned to");
  return made;
}

ExpressionPtr ExpressionParser::name_target(NameUse use) {
  const int line = current().line;
  ExpressionPtr made = node(line, Name{expect_any_name(), use, {}});
  if (!can_be_assigned(*made)) fail_at(line, "this cannot be assigned to");
  return made;
}

}  // namespace assay::jinja
