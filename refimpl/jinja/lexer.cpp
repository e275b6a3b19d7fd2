#include "refimpl/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/jinja/string_literal.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

constexpr std::size_t kMostTokens = 1'000'000;

// Longer ones first.
constexpr std::array<std::string_view, 26> kSymbols = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                       "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                       ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

// Line breaks of every kind as \n, and without the last one.
std::string normalized(std::string_view source, bool keep_last) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    text += '\n';
  }
  if (!keep_last && text.ends_with('\n')) text.pop_back();
  return text;
}

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  Lexer(std::string_view source, const Whitespace& whitespace) : rest_(source), whitespace_(whitespace) {}

  std::vector<Token> run() {
    while (!rest_.empty()) data();
    add(TokenType::end, "");
    return std::move(tokens_);
  }

 private:
  Token& add(TokenType type, std::string text) {
    if (tokens_.size() >= kMostTokens)
      fail_at(line_, fmt::format("the template has more than {} tokens", kMostTokens));
    tokens_.push_back({type, line_, std::move(text), {}});
    return tokens_.back();
  }

  // Lines are counted as text is passed.
  std::string_view take(std::size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    line_ += static_cast<int>(std::count(taken.begin(), taken.end(), '\n'));
    rest_.remove_prefix(taken.size());
    if (!taken.empty()) at_line_start_ = taken.back() == '\n';
    return taken;
  }

  std::size_t spaces(std::string_view text) const { return text.size() - stripped(text, Side::left).size(); }

  // ---- outside of tags

  // Text up to the next tag, and what begins it.
  void data() {
    std::size_t at = 0;
    for (;; ++at) {
      at = rest_.find('{', at);
      if (at == std::string_view::npos || at + 1 >= rest_.size()) {
        add(TokenType::data, std::string(rest_));
        take(rest_.size());
        return;
      }
      const char second = rest_[at + 1];
      if (second == '{' || second == '%' || second == '#') break;
    }
    const std::string_view tag = rest_.substr(at);
    const char sign = tag.size() > 2 && (tag[2] == '-' || tag[2] == '+') ? tag[2] : ' ';
    const std::size_t opening = sign == ' ' ? 2 : 3;
    put_data(at, sign, tag[1] != '{');
    if (tag[1] == '%') {
      if (const std::size_t raw = raw_begin(tag, opening); raw != 0) return raw_block(raw);
      add(TokenType::block_begin, "");
    } else if (tag[1] == '{') {
      add(TokenType::variable_begin, "");
    }
    take(opening);
    if (tag[1] == '#') return comment();
    code(tag[1] == '%');
  }

  // The text before a tag, with white space taken off its end as the tag's sign and lstrip_blocks ask for.
  void put_data(std::size_t bytes, char sign, bool may_strip_line) {
    std::string_view text = rest_.substr(0, bytes);
    if (sign == '-') {
      text = stripped(text, Side::right);
    } else if (sign != '+' && whitespace_.lstrip_blocks && may_strip_line) {
      const std::size_t line = text.rfind('\n') + 1;
      if ((line > 0 || at_line_start_) && stripped(text.substr(line), Side::left).empty())
        text = text.substr(0, line);
    }
    if (!text.empty()) add(TokenType::data, std::string(text));
    take(bytes);
  }

  // Behind the end of a block or comment: "-%}" takes white space along, "%}" a line break.
  std::size_t ending(std::string_view text, std::string_view end, bool trims) const {
    if (text.starts_with('-') && text.substr(1).starts_with(end))
      return 1 + end.size() + spaces(text.substr(1 + end.size()));
    if (trims && text.starts_with('+') && text.substr(1).starts_with(end)) return 1 + end.size();
    if (!text.starts_with(end)) return 0;
    const bool newline = trims && whitespace_.trim_blocks && text.substr(end.size()).starts_with('\n');
    return end.size() + (newline ? 1 : 0);
  }

  void comment() {
    for (std::size_t at = 0; at < rest_.size(); ++at) {
      at = std::min(rest_.find('#', at), rest_.size());
      // The sign before it belongs to the end.
      const std::size_t from = at > 0 && (rest_[at - 1] == '-' || rest_[at - 1] == '+') ? at - 1 : at;
      if (const std::size_t bytes = ending(rest_.substr(from), "#}", true); bytes != 0) {
        take(from + bytes);
        return;
      }
    }
    // Jinja lets a comment pass that begins with the last characters of the text.
    if (!rest_.empty()) fail_at(line_, "a comment has no end ('#}')");
  }

  // The bytes of "{% raw %}" if `tag` begins so.
  std::size_t raw_begin(std::string_view tag, std::size_t opening) const {
    std::size_t at = opening + spaces(tag.substr(opening));
    if (!tag.substr(at).starts_with("raw")) return 0;
    at += 3;
    at += spaces(tag.substr(at));
    const std::string_view end = tag.substr(at);
    if (end.starts_with("-%}")) return at + 3 + spaces(end.substr(3));
    return end.starts_with("%}") ? at + 2 : 0;
  }

  void raw_block(std::size_t begin) {
    take(begin);
    for (std::size_t at = rest_.find("{%"); at != std::string_view::npos; at = rest_.find("{%", at + 1)) {
      const std::string_view tag = rest_.substr(at);
      const char sign = tag.size() > 2 && (tag[2] == '-' || tag[2] == '+') ? tag[2] : ' ';
      std::size_t inner = sign == ' ' ? 2 : 3;
      inner += spaces(tag.substr(inner));
      if (!tag.substr(inner).starts_with("endraw")) continue;
      inner += 6;
      inner += spaces(tag.substr(inner));
      const std::size_t end = ending(tag.substr(inner), "%}", true);
      if (end == 0) continue;
      put_data(at, sign, true);
      take(inner + end);
      return;
    }
    if (!rest_.empty()) fail_at(line_, "a raw block has no end ('{% endraw %}')");
  }

  // ---- inside of tags

  void code(bool is_block) {
    std::vector<char> open;  // the brackets that are to be closed
    for (;;) {
      if (const std::size_t blank = spaces(rest_); blank != 0) take(blank);
      if (rest_.empty()) return;
      if (open.empty()) {
        if (const std::size_t bytes = ending(rest_, is_block ? "%}" : "}}", is_block); bytes != 0) {
          add(is_block ? TokenType::block_end : TokenType::variable_end, "");
          take(bytes);
          return;
        }
      }
      if (number() || name() || string()) continue;
      symbol(open);
    }
  }

  // Bytes of digits with single underscores between them.
  std::size_t digits(std::size_t at, std::string_view allowed = "0123456789") const {
    std::size_t end = at;
    while (end < rest_.size()) {
      const bool underscore = rest_[end] == '_' && end > at;
      const std::size_t digit = underscore ? end + 1 : end;
      if (digit >= rest_.size() || allowed.find(rest_[digit]) == std::string_view::npos) break;
      end = digit + 1;
    }
    return end - at;
  }

  std::size_t real_number() const {
    // Not behind a dot: x.0.1 is item 1 of item 0.
    if (!tokens_.empty() && tokens_.back().type == TokenType::symbol && tokens_.back().text == "." &&
        adjacent_dot_)
      return 0;
    const std::size_t whole = digits(0);
    if (whole == 0) return 0;
    std::size_t end = whole;
    bool is_real = false;
    if (end < rest_.size() && rest_[end] == '.' && digits(end + 1) != 0) {
      end += 1 + digits(end + 1);
      is_real = true;
    }
    if (end < rest_.size() && (rest_[end] | 0x20) == 'e') {
      const bool sign = end + 1 < rest_.size() && (rest_[end + 1] == '+' || rest_[end + 1] == '-');
      const std::size_t exponent = digits(end + (sign ? 2 : 1));
      if (exponent != 0) {
        end += (sign ? 2 : 1) + exponent;
        is_real = true;
      }
    }
    return is_real ? end : 0;
  }

  std::size_t whole_number() const {
    static constexpr std::string_view kHex = "0123456789abcdefABCDEF";
    if (rest_.empty() || !is_ascii_digit(rest_[0])) return 0;
    if (rest_[0] != '0') return digits(0);
    const char letter = rest_.size() > 1 ? static_cast<char>(rest_[1] | 0x20) : ' ';
    const std::string_view allowed = letter == 'x'   ? kHex
                                     : letter == 'o' ? "01234567"
                                     : letter == 'b' ? "01"
                                                     : "";
    if (!allowed.empty()) {
      const std::size_t from = rest_.substr(2).starts_with('_') ? 3 : 2;
      if (const std::size_t more = digits(from, allowed); more != 0) return from + more;
    }
    return digits(0, "0");
  }

  bool number() {
    if (const std::size_t bytes = real_number(); bytes != 0) {
      std::string text(rest_.substr(0, bytes));
      std::erase(text, '_');
      const double value = std::strtod(text.c_str(), nullptr);
      if (std::isinf(value)) fail_at(line_, "a number is out of range");
      add(TokenType::number, std::string(rest_.substr(0, bytes))).number = Value::of_real(value);
      take(bytes);
      return true;
    }
    const std::size_t bytes = whole_number();
    if (bytes == 0) return false;
    const auto value = parse_integer(rest_.substr(0, bytes), 0);
    if (!value) fail_at(line_, "a number has too many digits");
    add(TokenType::number, std::string(rest_.substr(0, bytes))).number = *value;
    take(bytes);
    return true;
  }

  bool name() {
    std::size_t at = 0, end = 0;
    while (at < rest_.size()) {
      const char32_t c = next_character(rest_, at);
      if (!is_word(c) && !is_identifier_part(c)) break;
      if (end == 0 ? !is_identifier_start(c) : !is_identifier_part(c))
        fail_at(line_, "a name has a character that names cannot have");
      end = at;
    }
    if (end == 0) return false;
    add(TokenType::name, std::string(rest_.substr(0, end)));
    take(end);
    return true;
  }

  bool string() {
    if (rest_[0] != '\'' && rest_[0] != '"') return false;
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != rest_[0]) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) unexpected();
    add(TokenType::string, unescape_literal(rest_.substr(1, end - 1), line_));
    take(end + 1);
    return true;
  }

  void symbol(std::vector<char>& open) {
    const auto found = std::find_if(kSymbols.begin(), kSymbols.end(),
                                    [&](std::string_view symbol) { return rest_.starts_with(symbol); });
    if (found == kSymbols.end()) unexpected();
    const char first = found->front();
    if (first == '(' || first == '[' || first == '{')
      open.push_back(first == '(' ? ')' : first == '[' ? ']' : '}');
    if (first == ')' || first == ']' || first == '}') {
      if (open.empty()) fail_at(line_, fmt::format("unexpected '{}'", first));
      if (open.back() != first)
        fail_at(line_, fmt::format("unexpected '{}', expected '{}'", first, open.back()));
      open.pop_back();
    }
    add(TokenType::symbol, std::string(*found));
    take(found->size());
    adjacent_dot_ = !rest_.empty() && !is_space(static_cast<unsigned char>(rest_[0]));
  }

  [[noreturn]] void unexpected() const {
    std::size_t at = 0;
    next_character(rest_, at);
    fail_at(line_, fmt::format("unexpected character '{}'", escape_for_terminal(rest_.substr(0, at))));
  }

  std::string_view rest_;
  const Whitespace& whitespace_;
  std::vector<Token> tokens_;
  int line_ = 1;
  bool at_line_start_ = true;
  bool adjacent_dot_ = false;  // behind a symbol nothing stood before the next token
};

}  // namespace

void fail_at(int line, std::string_view what) {
  throw Error::input(fmt::format("line {}: {}", line, what));
}

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::data: return "text outside of tags";
    case TokenType::variable_begin: return "{{";
    case TokenType::variable_end: return "}}";
    case TokenType::block_begin: return "{%";
    case TokenType::block_end: return "%}";
    case TokenType::end: return "end of template";
    case TokenType::string: return "a string";
    case TokenType::number:
    case TokenType::symbol:
    case TokenType::name: return token.text;
  }
  return {};
}

std::vector<Token> tokenize(std::string_view source, const Whitespace& whitespace) {
  if (!is_valid_utf8(source)) throw Error::input("the template is not UTF-8");
  const std::string text = normalized(source, whitespace.keep_trailing_newline);
  return Lexer(text, whitespace).run();
}

}  // namespace assay::jinja
