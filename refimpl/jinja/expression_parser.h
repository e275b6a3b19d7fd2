// The expressions of the grammar; statements come on top (parser.cpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "refimpl/jinja/ast.h"
#include "refimpl/jinja/lexer.h"

namespace assay::jinja {

class ExpressionParser {
 protected:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // ---- the stream
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token next();
  std::size_t position() const { return at_; }
  void move_to(std::size_t position) { at_ = position; }
  bool at(TokenType type) const { return current().type == type; }
  static bool is(const Token& token, TokenType type, std::string_view text) {
    return token.type == type && token.text == text;
  }
  bool at_name(std::string_view name) const { return is(current(), TokenType::name, name); }
  bool at_symbol(std::string_view symbol) const { return is(current(), TokenType::symbol, symbol); }
  bool skip_name(std::string_view name);
  bool skip_symbol(std::string_view symbol);
  void expect_symbol(std::string_view symbol);
  void expect_name(std::string_view name);
  std::string expect_any_name();
  void expect(TokenType type, std::string_view shown);
  [[noreturn]] void fail_here(std::string_view what) const { fail_at(current().line, what); }
  [[noreturn]] void expected(std::string_view what) const;

  // ---- expressions
  ExpressionPtr expression(bool with_conditional = true);
  struct TupleRules {
    bool simple = false;  // names and literals only, as on the left of =
    bool with_conditional = true;
    std::string_view end_name = {};  // a name that ends it too
    bool in_parentheses = false;
    bool with_namespace = false;
  };
  ExpressionPtr tuple(const TupleRules& rules);
  ExpressionPtr primary(bool with_namespace);
  ExpressionPtr filters(ExpressionPtr of, bool inline_start);
  CallArguments call_arguments();

  struct TargetRules {
    std::string_view end_name = {};
    bool with_namespace = false;
    NameUse use = NameUse::store;
  };
  ExpressionPtr target(const TargetRules& rules);
  ExpressionPtr name_target(NameUse use);

  template <class Kind>
  ExpressionPtr node(int line, Kind kind) {
    auto made = std::make_unique<Expression>();
    made->line = line;
    made->is = std::move(kind);
    set_depth(*made);
    return made;
  }

  // Parentheses in parentheses, blocks in blocks: bounded, since reading them recurses.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser);
    ~Nested() { --parser_.nesting_; }

   private:
    ExpressionParser& parser_;
  };

 private:
  void set_depth(Expression& made) const;
  ExpressionPtr conditional();
  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr inverse();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter);
  ExpressionPtr postfix(ExpressionPtr of);
  ExpressionPtr filter_or_test(ExpressionPtr of);
  ExpressionPtr subscript(ExpressionPtr of);
  ExpressionPtr subscribed();
  ExpressionPtr test(ExpressionPtr of);
  ExpressionPtr list_literal();
  ExpressionPtr dict_literal();
  bool tuple_ends(std::string_view end_name) const;
  std::string dotted_name();

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace assay::jinja
