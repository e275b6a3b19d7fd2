#include "refimpl/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "refimpl/jinja/expression_parser.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  explicit Parser(std::vector<Token> tokens) : ExpressionParser(std::move(tokens)) {}

  Program run() {
    Program program;
    program.body = statements({});
    return program;
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  template <class Kind>
  StatementPtr made(int line, Kind kind) {
    auto statement = std::make_unique<Statement>();
    statement->line = line;
    statement->is = std::move(kind);
    return statement;
  }

  bool at_one_of(Ends names) const {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return at_name(name); });
  }

  // Up to one of the tags `ends`, whose name is then the current token.
  Statements statements(Ends ends) {
    const Nested nested(*this);
    Statements body;
    Output output;
    const auto flush = [&] {
      if (output.parts.empty()) return;
      const int line = output.parts.front()->line;
      body.push_back(made(line, std::exchange(output, {})));
    };
    while (!at(TokenType::end)) {
      if (at(TokenType::data)) {
        const Token token = next();
        if (!token.text.empty()) output.parts.push_back(node(token.line, TemplateData{text(token.text)}));
      } else if (at(TokenType::variable_begin)) {
        next();
        output.parts.push_back(tuple({}));
        expect(TokenType::variable_end, "}}");
      } else {
        flush();
        expect(TokenType::block_begin, "{%");
        if (at_one_of(ends)) return body;
        body.push_back(statement());
        expect(TokenType::block_end, "%}");
      }
    }
    flush();
    if (ends.size() != 0) fail_here(fmt::format("the template ends where '{}' should be", *(ends.end() - 1)));
    return body;
  }

  // Behind a tag's head: its body, up to the name of the tag that ends it, which `last` consumes too.
  Statements body(Ends ends) {
    skip_symbol(":");
    expect(TokenType::block_end, "%}");
    return statements(ends);
  }
  Statements last_body(std::string_view end) {
    Statements all = body({end});
    next();
    return all;
  }

  StatementPtr statement() {
    if (!at(TokenType::name)) fail_here("a tag has no name");
    using Parse = StatementPtr (Parser::*)(int);
    static constexpr std::pair<std::string_view, Parse> kTags[] = {
        {"for", &Parser::for_loop},          {"if", &Parser::if_tag},
        {"set", &Parser::set_tag},           {"macro", &Parser::macro},
        {"call", &Parser::call_block},       {"filter", &Parser::filter_block},
        {"with", &Parser::with_tag},         {"print", &Parser::print_tag},
        {"block", &Parser::block},           {"autoescape", &Parser::autoescape},
        {"break", &Parser::break_tag},       {"continue", &Parser::continue_tag},
        {"generation", &Parser::generation}, {"extends", &Parser::extends},
        {"include", &Parser::include},       {"import", &Parser::import},
        {"from", &Parser::from_import}};
    const auto found =
        std::find_if(std::begin(kTags), std::end(kTags), [&](const auto& tag) { return at_name(tag.first); });
    if (found == std::end(kTags)) fail_here(fmt::format("unknown tag '{}'", current().text));
    return (this->*found->second)(next().line);
  }

  StatementPtr for_loop(int line) {
    For loop;
    const std::size_t target_at = position();
    loop.target = target({.end_name = "in"});
    const std::size_t behind = position();
    move_to(target_at);  // once more, for the frame of the test
    loop.test_target = target({.end_name = "in"});
    move_to(behind);
    expect_name("in");
    loop.over = tuple({.with_conditional = false, .end_name = "recursive"});
    if (skip_name("if")) loop.test = expression();
    loop.recursive = skip_name("recursive");
    loop.body = body({"else", "endfor"});
    if (next().text == "else") loop.otherwise = last_body("endfor");
    return made(line, std::move(loop));
  }

  StatementPtr if_tag(int line) {
    If made_if;
    for (std::string_view tag = "if"; tag != "else" && tag != "endif";) {
      If::Branch branch;
      branch.test = tuple({.with_conditional = false});
      branch.body = body({"elif", "else", "endif"});
      made_if.branches.push_back(std::move(branch));
      tag = at_name("elif") ? "elif" : at_name("else") ? "else" : "endif";
      next();
      if (tag == "else") made_if.otherwise = last_body("endif");
    }
    return made(line, std::move(made_if));
  }

  StatementPtr set_tag(int line) {
    ExpressionPtr to = target({.with_namespace = true});
    if (skip_symbol("=")) {
      Set set;
      set.target = std::move(to);
      set.value = tuple({});
      return made(line, std::move(set));
    }
    SetBlock set;
    set.target = std::move(to);
    if (at_symbol("|")) set.filter = filters(nullptr, false);
    set.body = last_body("endset");
    return made(line, std::move(set));
  }

  void signature(MacroBody& macro) {
    expect_symbol("(");
    while (!at_symbol(")")) {
      if (!macro.names.empty()) expect_symbol(",");
      ExpressionPtr name = name_target(NameUse::parameter);
      const std::string& text = std::get<Name>(name->is).name;
      if (std::find(macro.parameters.begin(), macro.parameters.end(), text) != macro.parameters.end())
        fail_at(name->line, fmt::format("the parameter {} is there twice", text));
      macro.parameters.push_back(text);
      macro.names.push_back(std::move(name));
      if (skip_symbol("="))
        macro.defaults.push_back(expression());
      else if (!macro.defaults.empty())
        fail_here("a parameter without a default follows one that has one");
    }
    next();
  }

  StatementPtr macro(int line) {
    Macro macro;
    macro.name = std::get<Name>(name_target(NameUse::store)->is).name;
    signature(macro.body);
    macro.body.body = last_body("endmacro");
    return made(line, std::move(macro));
  }

  StatementPtr call_block(int line) {
    CallBlock block;
    if (at_symbol("(")) signature(block.body);
    block.call = expression();
    if (!std::holds_alternative<Call>(block.call->is)) fail_at(line, "'call' wants a call");
    block.body.body = last_body("endcall");
    return made(line, std::move(block));
  }

  StatementPtr generation(int line) {
    CallBlock block;
    block.body.body = last_body("endgeneration");
    return made(line, std::move(block));
  }

  StatementPtr filter_block(int line) {
    FilterBlock block;
    block.filter = filters(nullptr, true);
    block.body = last_body("endfilter");
    return made(line, std::move(block));
  }

  StatementPtr with_tag(int line) {
    With with;
    while (!at(TokenType::block_end)) {
      if (!with.targets.empty()) expect_symbol(",");
      with.targets.push_back(target({.use = NameUse::parameter}));
      expect_symbol("=");
      with.values.push_back(expression());
    }
    with.body = last_body("endwith");
    return made(line, std::move(with));
  }

  StatementPtr print_tag(int line) {
    Output output;
    while (!at(TokenType::block_end)) {
      if (!output.parts.empty()) expect_symbol(",");
      output.parts.push_back(expression());
    }
    return made(line, std::move(output));
  }

  StatementPtr autoescape(int line) {
    Autoescape made_tag;
    made_tag.on = expression();
    made_tag.body = last_body("endautoescape");
    return made(line, std::move(made_tag));
  }

  StatementPtr block(int line) {
    Block block;
    block.name = expect_any_name();
    block.scoped = skip_name("scoped");
    block.required = skip_name("required");
    block.body = last_body("endblock");
    const auto blank = [](const ExpressionPtr& part) {
      const auto* data = std::get_if<TemplateData>(&part->is);
      return data != nullptr && stripped(data->text.str(), Side::both).empty();
    };
    for (const auto& each : block.body) {
      const auto* output = std::get_if<Output>(&each->is);
      const bool nothing =
          output != nullptr && std::all_of(output->parts.begin(), output->parts.end(), blank);
      if (block.required && !nothing)
        fail_at(line, "a required block may hold comments and white space only");
    }
    skip_name(block.name);
    return made(line, std::move(block));
  }

  StatementPtr break_tag(int line) { return made(line, Break{}); }
  StatementPtr continue_tag(int line) { return made(line, Continue{}); }

  // ---- other templates, of which there are none

  void context_words() {
    if ((at_name("with") || at_name("without")) && is(ahead(), TokenType::name, "context")) next(), next();
  }

  StatementPtr extends(int line) { return made(line, OtherTemplate{"extends", expression(), {}}); }

  StatementPtr include(int line) {
    OtherTemplate other{"include", expression(), {}};
    if (at_name("ignore") && is(ahead(), TokenType::name, "missing")) next(), next();
    context_words();
    return made(line, std::move(other));
  }

  StatementPtr import(int line) {
    OtherTemplate other{"import", expression(), {}};
    expect_name("as");
    other.targets.push_back(std::get<Name>(name_target(NameUse::store)->is).name);
    context_words();
    return made(line, std::move(other));
  }

  StatementPtr from_import(int line) {
    OtherTemplate other{"from", expression(), {}};
    expect_name("import");
    for (;;) {
      if (!other.targets.empty()) expect_symbol(",");
      if ((at_name("with") || at_name("without")) && is(ahead(), TokenType::name, "context")) break;
      std::string name = std::get<Name>(name_target(NameUse::store)->is).name;
      if (name.starts_with('_')) fail_here("names that begin with an underscore cannot be imported");
      if (skip_name("as")) name = std::get<Name>(name_target(NameUse::store)->is).name;
      other.targets.push_back(std::move(name));
      if (!at_symbol(",")) break;
    }
    context_words();
    return made(line, std::move(other));
  }
};

}  // namespace

Program parse(std::string_view source, const Whitespace& whitespace) {
  return Parser(tokenize(source, whitespace)).run();
}

}  // namespace assay::jinja
