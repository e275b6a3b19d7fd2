#include "tests/support/cpp_source.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace assay::test {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The text line by line as it was, without comments, preprocessor lines and the insides of literals.
std::string code_of(std::string_view s) {
  std::string out;
  bool line_start = true;
  for (std::size_t i = 0; i < s.size();) {
    const char c = s[i];
    if (c == '/' && s.substr(i, 2) == "//") {
      while (i < s.size() && s[i] != '\n') ++i;
    } else if (c == '/' && s.substr(i, 2) == "/*") {
      const std::size_t end = std::min(s.find("*/", i), s.size() - 2) + 2;
      for (; i < end; ++i)
        if (s[i] == '\n') out += '\n';
    } else if (c == '#' && line_start) {
      for (; i < s.size() && s[i] != '\n'; ++i) {
        if (s[i] != '\\' || i + 1 >= s.size() || s[i + 1] != '\n') continue;
        out += '\n';
        ++i;
      }
    } else if (c == '"' && !out.empty() && out.back() == 'R') {
      const std::size_t open = std::min(s.find('(', i), s.size() - 1);
      const std::string close = ")" + std::string(s.substr(i + 1, open - i - 1)) + "\"";
      const std::size_t end = std::min(s.find(close, open), s.size() - close.size()) + close.size();
      out += "\"\"";
      for (; i < end; ++i)
        if (s[i] == '\n') out += '\n';
    } else if (c == '"' ||
               (c == '\'' && (out.empty() || !std::isdigit(static_cast<unsigned char>(out.back()))))) {
      for (++i; i < s.size() && s[i] != c; ++i)
        if (s[i] == '\\') ++i;
      ++i;
      out += c == '"' ? "\"\"" : "0";
    } else {
      out += c;
      ++i;
    }
    if (i > 0 && i <= s.size() && !out.empty())
      line_start = out.back() == '\n' || (line_start && (out.back() == ' ' || out.back() == '\t'));
  }
  return out;
}

std::string trimmed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank) out += c;
    if (blank && !out.empty() && out.back() != ' ') out += ' ';
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// Without attributes, alignas, access labels and `template <...>` before a declaration.
std::string bare(const std::string& statement) {
  static const std::regex noise(R"(\[\[[^\]]*\]\]|\balignas\s*\([^)]*\)|^\s*(public|private|protected)\s*:)");
  std::string text = trimmed(std::regex_replace(statement, noise, " "));
  while (text.starts_with("template")) {
    int depth = 0;
    std::size_t i = 8;
    for (; i < text.size(); ++i) {
      if (text[i] == '<') ++depth;
      if (text[i] == '>' && --depth == 0) break;
    }
    text = trimmed(std::string_view(text).substr(std::min(i + 1, text.size())));
  }
  return text;
}

// The types of "const Matrix& x, int y = 3": names and defaults left out, by value and by reference alike.
std::string types_of(std::string_view parameters) {
  std::string types, one;
  int depth = 0;
  const auto add = [&] {
    std::string type = trimmed(one.substr(0, one.find('=')));
    one.clear();
    if (type.empty()) return;
    std::size_t end = type.size();
    while (end > 0 && is_word(type[end - 1])) --end;
    if (end > 0 && end < type.size() && type[end - 1] != ':') type = trimmed(type.substr(0, end));
    if (type.starts_with("const ") && type.ends_with('&')) type = trimmed(type.substr(6, type.size() - 7));
    types += (types.empty() ? "" : ", ") + type;
  };
  for (const char c : parameters) {
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      add();
    } else {
      one += c;
    }
  }
  add();
  return types;
}

class Reader {
 public:
  explicit Reader(std::string code) : code_(std::move(code)) {}

  CppSource read() {
    source_.code = code_;
    scope({}, false, false);
    return std::move(source_);
  }

 private:
  std::size_t line_at(std::size_t place) const {
    return 1 + static_cast<std::size_t>(
                   std::count(code_.begin(), code_.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
  }

  // Past the block that begins at at_; the semicolons in it that stand in no initializer.
  std::size_t skip_block() {
    std::size_t statements = 0, rows = 0;
    std::vector<bool> is_row;
    char before = 0;
    for (; at_ < code_.size(); ++at_) {
      const char c = code_[at_];
      if (c == ';' && rows == 0) ++statements;
      if (c == '{') {
        is_row.push_back(!is_row.empty() && std::string_view("(,={").find(before) != std::string_view::npos &&
                         (before != '{' || is_row.back()));
        rows += is_row.back() ? 1 : 0;
      }
      if (c == '}') {
        rows -= is_row.back() ? 1 : 0;
        is_row.pop_back();
        if (is_row.empty()) {
          ++at_;
          break;
        }
      }
      if (std::isspace(static_cast<unsigned char>(c)) == 0) before = c;
    }
    return statements;
  }

  // A namespace (or the file), or a class: whose own declarations are not told, only its functions.
  void scope(const std::string& name, bool unnamed, bool in_class) {
    std::string statement;
    std::size_t begin = at_;
    int parentheses = 0;
    const auto start_anew = [&] {
      statement.clear();
      begin = at_;
    };
    while (at_ < code_.size()) {
      const char c = code_[at_];
      if (c == '(') ++parentheses;
      if (c == ')') --parentheses;
      if (c == '{') {
        if (parentheses > 0 || !block(name, unnamed, in_class, begin, statement)) {
          if (parentheses > 0) skip_block();
          statement += "{}";
          continue;
        }
        start_anew();
        continue;
      }
      ++at_;
      if (c == '}') return;
      if (c == ';' && parentheses == 0) {
        if (!in_class) declare(name, unnamed, begin, statement);
        start_anew();
        continue;
      }
      if (statement.empty() && std::isspace(static_cast<unsigned char>(c))) {
        begin = at_;
        continue;
      }
      statement += c;
    }
  }

  // The block at at_, behind `statement`. False: it was part of the statement, which goes on.
  bool block(const std::string& name, bool unnamed, bool in_class, std::size_t begin,
             const std::string& statement) {
    static const std::regex is_namespace(R"(^(inline )?namespace ?([\w:]*)$)"), linkage(R"(^extern ?""$)");
    static const std::regex is_class(R"(^(struct|class|union)\b[^(=]*$)"),
        initializers(R"(\) ?(noexcept ?)?:[^:])");
    const std::string text = bare(statement);
    std::smatch match;
    if (std::regex_match(text, match, is_namespace)) {
      ++at_;
      const std::string inner = match[2].str();
      scope(inner.empty() || name.empty() ? name + inner : name + "::" + inner, unnamed || inner.empty(),
            false);
      return true;
    }
    if (std::regex_match(text, linkage)) {
      ++at_;
      scope(name, unnamed, in_class);
      return true;
    }
    if (std::regex_search(text, is_class)) {
      if (!in_class) declare(name, unnamed, begin, statement + "{}");
      ++at_;
      scope(name, unnamed, true);
      at_ = std::min(code_.find(';', at_), code_.size() - 1) + 1;
      return true;
    }
    const std::size_t open = text.find('('), equals = text.find('=');
    const bool is_function = open != std::string::npos && text.find(')') != std::string::npos &&
                             (equals > open || text.find("operator") < open) && text.back() != '=' &&
                             !text.starts_with("enum");
    const bool member = is_function && std::regex_search(text, initializers) && is_word(text.back());
    if (!is_function || member) {
      skip_block();
      return false;
    }
    if (!in_class) declare(name, unnamed, begin, statement);
    const std::size_t first = line_at(begin), statements = skip_block();
    source_.functions.push_back({name_before(text, open), first, line_at(at_ - 1) - first + 1, statements});
    return true;
  }

  static std::string name_before(const std::string& text, std::size_t end) {
    while (end > 0 && text[end - 1] == ' ') --end;
    std::size_t begin = end;
    while (begin > 0 && (is_word(text[begin - 1]) || text[begin - 1] == '~')) --begin;
    return text.substr(begin, end - begin);
  }

  void declare(const std::string& scope_name, bool unnamed, std::size_t begin, const std::string& statement) {
    static const std::regex type(R"(^(struct|class|union|enum( class| struct)?) (\w+))"),
        alias(R"(^(using|namespace) (\w+) ?=)");
    const std::string text = bare(statement);
    Declaration d = {scope_name, unnamed, {}, {}, text, line_at(begin)};
    std::smatch match;
    if (text.empty() || text.starts_with("static_assert") || text.starts_with("using namespace")) return;
    if (std::regex_search(text, match, alias)) {
      d.name = match[2].str();
    } else if (text.starts_with("using ")) {
      return;
    } else if (std::regex_search(text, match, type)) {
      if (text.find('{') == std::string::npos) return;  // a forward declaration
      d.name = match[3].str();
    } else {
      int depth = 0;
      std::size_t i = 0;
      for (; i < text.size(); ++i) {
        if (text[i] == '<' || text[i] == '[') ++depth;
        if ((text[i] == '>' && i > 0 && text[i - 1] != '-') || text[i] == ']') --depth;
        if (depth == 0 && (text[i] == '=' || text[i] == '(' || text[i] == '{')) break;
      }
      std::size_t end = i;
      while (end > 0 && text[end - 1] == ' ') --end;
      if (end > 0 && text[end - 1] == ']') end = text.find('[');
      d.name = name_before(text, end);
      const std::size_t before = end - d.name.size();
      if (d.name.empty() || (before > 0 && text[before - 1] == ':')) return;  // X::member, operator+
      if (i < text.size() && text[i] == '(') {
        if (statement.find(')') == std::string::npos) return;
        std::size_t close = i;
        int inside = 0;
        for (; close < text.size(); ++close) {
          if (text[close] == '(') ++inside;
          if (text[close] == ')' && --inside == 0) break;
        }
        d.parameters = types_of(std::string_view(text).substr(i + 1, close - i - 1));
      } else {
        declare_others(d, text.substr(i));
      }
    }
    source_.declarations.push_back(std::move(d));
  }

  // What follows the first of "int a = f(1, 2), *b, c{3}".
  void declare_others(Declaration d, const std::string& rest) {
    int depth = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (std::string_view("({[<").find(rest[i]) != std::string_view::npos) ++depth;
      if (std::string_view(")}]>").find(rest[i]) != std::string_view::npos) --depth;
      if (rest[i] != ',' || depth != 0) continue;
      std::size_t begin = i + 1;
      while (begin < rest.size() && std::string_view(" *&").find(rest[begin]) != std::string_view::npos)
        ++begin;
      std::size_t end = begin;
      while (end < rest.size() && is_word(rest[end])) ++end;
      d.name = rest.substr(begin, end - begin);
      if (!d.name.empty()) source_.declarations.push_back(d);
    }
  }

  std::string code_;
  std::size_t at_ = 0;
  CppSource source_;
};

}  // namespace

CppSource read_cpp(std::string_view text) {
  return Reader(code_of(text)).read();
}

}  // namespace assay::test
