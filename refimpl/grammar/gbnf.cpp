// The parser of GBNF: one function a construct, in the order of the language.
//
//   rules     := { name "::=" choice newline }
//   choice    := sequence { "|" sequence }
//   sequence  := { item [ "?" | "*" | "+" | "{" m [ "," [ n ] ] "}" ] }
//   item      := '"' … '"' | "[" … "]" | "." | name | "(" choice ")"
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/system/error.h"
#include "refimpl/grammar/syntax.h"
#include "refimpl/grammar/utf8.h"

namespace assay::grammar {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || is_digit(c);
}

class GbnfParser {
 public:
  GbnfParser(std::string_view text, const std::filesystem::path& source, const GrammarLimits& limits)
      : text_(text), source_(source), limits_(limits) {}

  Grammar run() {
    if (text_.size() > limits_.bytes)
      fail(fmt::format("the grammar has {} bytes, more than {}", text_.size(), limits_.bytes));
    skip_space(true);
    while (at_ < text_.size()) rule();
    for (std::size_t i = 0; i < grammar_.rules.size(); ++i) {
      if (!defined_[i]) fail_at(used_at_[i], fmt::format("rule '{}' is not defined", grammar_.rules[i].name));
    }
    const auto root = numbers_.find("root");
    if (root == numbers_.end()) fail("there is no rule 'root'");
    grammar_.root = root->second;
    return std::move(grammar_);
  }

 private:
  [[noreturn]] void fail(std::string what) const { fail_at(at_, std::move(what)); }
  [[noreturn]] void fail_at(std::size_t at, std::string what) const {
    throw Error::input(std::move(what)).in(source_).at(at);
  }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool at_end() const { return at_ >= text_.size(); }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void skip_space(bool lines) {
    for (; !at_end(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        while (!at_end() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
        if (at_end()) return;
      }
      const char here = text_[at_];
      if (here == ' ' || here == '\t') continue;
      if (lines && (here == '\n' || here == '\r')) continue;
      return;
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    while (is_name_character(peek())) ++at_;
    if (at_ == begin) fail("a name was expected");
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::size_t number_of(const std::string& name, std::size_t at) {
    const auto [found, is_new] = numbers_.try_emplace(name, grammar_.rules.size());
    if (is_new) {
      grammar_.rules.push_back({name, {}});
      defined_.push_back(false);
      used_at_.push_back(at);
    }
    return found->second;
  }

  void rule() {
    const std::size_t begin = at_;
    const std::size_t number = number_of(name(), begin);
    if (defined_[number])
      fail_at(begin, fmt::format("rule '{}' is defined twice", grammar_.rules[number].name));
    defined_[number] = true;
    skip_space(false);
    if (text_.substr(at_, 3) != "::=") fail("'::=' was expected");
    at_ += 3;
    skip_space(true);
    Expression body = choice(0);
    grammar_.rules[number].body = std::move(body);
    if (!at_end() && peek() != '\n' && peek() != '\r') fail("the rule's end was expected");
    skip_space(true);
  }

  Expression made(Expression::Kind kind) {
    if (++expressions_ > limits_.expressions)
      fail(fmt::format("the grammar has more than {} parts", limits_.expressions));
    Expression e;
    e.kind = kind;
    return e;
  }

  // depth: of parentheses; within them lines may end.
  Expression choice(std::size_t depth) {
    if (depth > limits_.depth) fail(fmt::format("parentheses more than {} deep", limits_.depth));
    Expression first = sequence(depth);
    if (peek() != '|') return first;
    Expression all = made(Expression::Kind::choice);
    all.parts.push_back(std::move(first));
    while (take('|')) {
      skip_space(true);
      all.parts.push_back(sequence(depth));
    }
    return all;
  }

  Expression sequence(std::size_t depth) {
    Expression all = made(Expression::Kind::sequence);
    while (auto part = item(depth)) {
      skip_space(depth > 0);
      for (int times = 0; repetition(*part); skip_space(depth > 0))
        if (++times > 8) fail("a repetition of a repetition of …: more than 8");
      all.parts.push_back(std::move(*part));
    }
    return all;
  }

  std::optional<Expression> item(std::size_t depth) {
    const char c = peek();
    if (at_end()) return std::nullopt;
    if (take('"')) return literal();
    if (take('[')) return character_class();
    if (take('.')) return characters(complement({}));
    if (take('(')) {
      skip_space(true);
      Expression inner = choice(depth + 1);
      if (!take(')')) fail("')' was expected");
      return inner;
    }
    if (is_name_character(c)) {
      const std::size_t begin = at_;
      Expression e = made(Expression::Kind::rule);
      e.rule = number_of(name(), begin);
      return e;
    }
    if (c == '<' || c == '!') fail("tokens in a grammar ('<…>') are not supported");
    if (c == '*' || c == '+' || c == '?' || c == '{') fail(fmt::format("'{}' repeats nothing", c));
    return std::nullopt;
  }

  Expression characters(std::vector<CodeRange> ranges) {
    Expression e = made(Expression::Kind::characters);
    e.characters = std::move(ranges);
    return e;
  }

  Expression literal() {
    Expression all = made(Expression::Kind::sequence);
    while (!take('"')) {
      if (at_end()) fail("a literal has no end");
      const std::uint32_t c = character();
      all.parts.push_back(characters(one(c, c)));
    }
    return all;
  }

  Expression character_class() {
    const std::size_t begin = at_ - 1;
    const bool negated = take('^');
    std::vector<CodeRange> ranges;
    while (!take(']')) {
      if (at_end()) fail_at(begin, "a character class has no end");
      const std::uint32_t first = character();
      std::uint32_t last = first;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        if (at_end()) fail_at(begin, "a character class has no end");
        last = character();
      }
      if (last < first) fail("a range of characters runs backwards");
      ranges.push_back({first, last});
    }
    ranges = tidy(std::move(ranges));
    if (negated) ranges = complement(ranges);
    if (ranges.empty()) fail_at(begin, "a character class holds nothing");
    return characters(std::move(ranges));
  }

  std::vector<CodeRange> one(std::uint32_t first, std::uint32_t last) const {
    std::vector<CodeRange> range = tidy({{first, last}});
    if (range.empty()) fail("no such character: U+D800 to U+DFFF and what is above U+10FFFF");
    return range;
  }

  // A character, or an escape.
  std::uint32_t character() {
    if (!take('\\')) return code_point();
    const char c = peek();
    if (at_end()) fail("an escape has no end");
    ++at_;
    switch (c) {
      case 'x': return hexadecimal(2);
      case 'u': return hexadecimal(4);
      case 'U': return hexadecimal(8);
      case 't': return '\t';
      case 'r': return '\r';
      case 'n': return '\n';
      case '\\':
      case '"':
      case '[':
      case ']': return static_cast<unsigned char>(c);
      default: --at_; fail("an unknown escape");
    }
  }

  std::uint32_t hexadecimal(std::size_t digits) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char c = peek();
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail(fmt::format("{} hexadecimal digits were expected", digits));
      value = value << 4 | static_cast<std::uint32_t>(digit);
      ++at_;
    }
    return value;
  }

  // One character of the grammar's own text, which is UTF-8.
  std::uint32_t code_point() {
    const std::optional<std::uint32_t> c = next_code_point(text_, at_);
    if (!c) fail("the grammar is not UTF-8");
    return *c;
  }

  // ?, *, +, {m,n} after an item: makes it a repetition of itself.
  bool repetition(Expression& item) {
    std::uint32_t least = 0, most = kUnbounded;
    if (take('?')) {
      most = 1;
    } else if (take('+')) {
      least = 1;
    } else if (take('{')) {
      skip_space(false);
      least = most = count();
      skip_space(false);
      if (take(',')) {
        skip_space(false);
        most = is_digit(peek()) ? count() : kUnbounded;
        skip_space(false);
      }
      if (!take('}')) fail("'}' was expected");
      if (most < least) fail("a repetition's most is below its least");
    } else if (!take('*')) {
      return false;
    }
    Expression repeated = made(Expression::Kind::repeat);
    repeated.least = least;
    repeated.most = most;
    repeated.parts.push_back(std::move(item));
    item = std::move(repeated);
    return true;
  }

  std::uint32_t count() {
    std::uint64_t value = 0;
    if (!is_digit(peek())) fail("a number was expected");
    for (; is_digit(peek()); ++at_) {
      value = 10 * value + static_cast<std::uint64_t>(peek() - '0');
      if (value > limits_.repetitions) fail(fmt::format("more than {} repetitions", limits_.repetitions));
    }
    return static_cast<std::uint32_t>(value);
  }

  std::string_view text_;
  const std::filesystem::path& source_;
  const GrammarLimits& limits_;
  std::size_t at_ = 0, expressions_ = 0;
  Grammar grammar_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<bool> defined_;
  std::vector<std::size_t> used_at_;
};

}  // namespace

Grammar parse_gbnf(std::string_view text, const std::filesystem::path& source, const GrammarLimits& limits) {
  return GbnfParser(text, source, limits).run();
}

}  // namespace assay::grammar
