// Oniguruma's and Rust's regular expressions in the words of PCRE2.
// Sources: Oniguruma doc/RE and doc/UNICODE_PROPERTIES; docs of Rust's regex and fancy-regex;
// pcre2pattern(3).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "core/system/error.h"
#include "refimpl/tokenizers/regex.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {
namespace {

// White_Space. PCRE2's \s has U+180E besides.
constexpr std::string_view kSpace =
    R"(\x{09}-\x{0D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
// Alphabetic, M, Nd, Nl and Pc (UTS #18), with Rust Join_Control as well. PCRE2 10.42 has L, N and the
// underscore. Oniguruma asks a table of Latin-1 first, in which the superscripts and fractions are words, but
// not within brackets.
#define ASSAY_WORD_CLASS                                                                           \
  "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}" \
  "\\x{1F170}-\\x{1F189}"
constexpr std::string_view kWord = ASSAY_WORD_CLASS "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
constexpr std::string_view kWordInClass = ASSAY_WORD_CLASS;
constexpr std::string_view kRustWord = ASSAY_WORD_CLASS "\\x{200C}\\x{200D}";
constexpr std::string_view kHex = "0-9A-Fa-f";
constexpr int kDeepest = 20;  // classes within classes

struct NamedClass {
  std::string_view name, meaning;
};
// Long names of general categories, and POSIX names used as properties: what Oniguruma's tables hold.
constexpr std::array<NamedClass, 22> kProperties = {
    {{"letter", "\\p{L}"},
     {"mark", "\\p{M}"},
     {"number", "\\p{N}"},
     {"punctuation", "\\p{P}"},
     {"symbol", "\\p{S}"},
     {"separator", "\\p{Z}"},
     {"other", "\\p{C}"},
     {"any", "\\x{0}-\\x{10FFFF}"},
     {"alnum", "\\p{Alphabetic}\\p{Nd}"},
     {"alpha", "\\p{Alphabetic}"},
     {"blank", "\\p{Zs}\\x{09}"},
     {"cntrl", "\\p{Cc}"},
     {"digit", "\\p{Nd}"},
     {"graph", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}"},
     {"lower", "\\p{Lowercase}"},
     {"print", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}\\p{Zs}"},
     {"punct", "\\p{P}"},
     {"space", kSpace},
     {"upper", "\\p{Uppercase}"},
     {"xdigit", kHex},
     {"word", kWord},
     {"ascii", "\\x{00}-\\x{7F}"}}};
// [[:alpha:]] of Rust is ASCII's.
constexpr std::array<NamedClass, 14> kAsciiClasses = {{{"alnum", "0-9A-Za-z"},
                                                       {"alpha", "A-Za-z"},
                                                       {"ascii", "\\x{00}-\\x{7F}"},
                                                       {"blank", "\\t "},
                                                       {"cntrl", "\\x{00}-\\x{1F}\\x{7F}"},
                                                       {"digit", "0-9"},
                                                       {"graph", "!-~"},
                                                       {"lower", "a-z"},
                                                       {"print", " -~"},
                                                       {"punct", "!-/:-@\\[-`{-~"},
                                                       {"space", "\\x{09}-\\x{0D} "},
                                                       {"upper", "A-Z"},
                                                       {"word", "0-9A-Za-z_"},
                                                       {"xdigit", kHex}}};
constexpr std::array<std::string_view, 8> kBinaryProperties = {
    "alphabetic",           "lowercase",   "uppercase", "whitespace", "emoji",
    "extendedpictographic", "ideographic", "math"};

std::string folded(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '_' && c != ' ' && c != '-')
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

// What stands inside [...] for a property; negation is the caller's.
std::string property_items(std::string_view name, bool in_class) {
  const std::string key = folded(name);
  if (key == "word" && in_class) return std::string(kWordInClass);
  for (const NamedClass& known : kProperties) {
    if (known.name == key) return std::string(known.meaning);
  }
  if (name.size() <= 2) return fmt::format("\\p{{{}}}", name);  // a general category
  const bool binary =
      std::find(kBinaryProperties.begin(), kBinaryProperties.end(), key) != kBinaryProperties.end();
  if (binary || name.find_first_of(":=") != std::string_view::npos) return fmt::format("\\p{{{}}}", name);
  // A script. PCRE2 would take the script's extensions in.
  return fmt::format("\\p{{sc:{}}}", key.starts_with("is") ? name.substr(2) : name);
}

// One character of the text, as a class: `items` between brackets, or a whole expression.
struct CharacterSet {
  std::string items;                // simple: [items]
  std::vector<std::string> others;  // or one of these expressions, each of one character
  bool negated = false;
  std::vector<std::string> and_also;  // and each of these at the same place

  bool simple() const { return others.empty() && and_also.empty(); }

  std::string positive() const {
    std::string either = items.empty() ? "" : "[" + items + "]";
    for (const std::string& other : others) either += (either.empty() ? "" : "|") + other;
    if (either.empty()) either = "(?!)";
    if (!others.empty()) either = "(?:" + either + ")";
    if (and_also.empty()) return either;
    std::string all = "(?:";
    for (const std::string& condition : and_also) all += "(?=" + condition + ")";
    return all + either + ")";
  }
  std::string expression() const {
    if (!negated) return positive();
    if (simple() && !items.empty()) return "[^" + items + "]";
    return "(?:(?!" + positive() + ")(?s:.))";
  }
};

class Translator {
 public:
  Translator(std::string_view pattern, RegexDialect dialect) : in_(pattern), dialect_(dialect) {}

  std::string translate() {
    while (at_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  bool oniguruma() const { return dialect_ == RegexDialect::oniguruma; }
  std::string_view word(bool in_class) const {
    return !oniguruma() ? kRustWord : in_class ? kWordInClass : kWord;
  }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  bool starts(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  [[noreturn]] void fail(std::string_view what) const {
    throw Error::input(fmt::format("pattern '{}' {}", in_.substr(0, 120), what));
  }

  void atom(const std::string& text) {
    atom_ = out_.size();
    out_ += text;
  }

  void step() {
    switch (peek()) {
      case '\\': return escape();
      case '[': return atom(read_class(0).expression());
      case '(': return open_group();
      case ')':
        if (groups_.empty()) fail("closes a group that is not open");
        atom_ = groups_.back();
        groups_.pop_back();
        break;
      case '|': atom_.reset(); break;
      case '{':
        if (atom_ && counted()) return;
        return literal();
      case '*':
      case '+':
      case '?':
      case '^':
      case '$': break;
      default: return literal();
    }
    out_ += in_[at_++];
  }

  void literal() {
    const std::size_t length = unicode::character_at(in_, at_).length;
    atom(std::string(in_.substr(at_, length)));
    at_ += length;
  }

  // {n} {n,} {n,m} {,m}. What `+` makes of it is possession in Rust, one more repetition in Oniguruma.
  bool counted() {
    std::size_t end = at_ + 1;
    const auto digits = [&] {
      const std::size_t begin = end;
      while (end < in_.size() && std::isdigit(static_cast<unsigned char>(in_[end]))) ++end;
      return std::string(in_.substr(begin, end - begin));
    };
    std::string low = digits();
    const bool comma = end < in_.size() && in_[end] == ',';
    if (comma) ++end;
    const std::string high = comma ? digits() : "";
    if (end >= in_.size() || in_[end] != '}' || (low.empty() && high.empty())) return false;
    if (low.empty()) low = "0";
    const std::string count = comma ? "{" + low + "," + high + "}" : "{" + low + "}";
    at_ = end + 1;
    if (oniguruma() && peek() == '+') {
      ++at_;
      out_.insert(*atom_, "(?:");
      out_ += count + ")+";
    } else {
      out_ += count;
    }
    return true;
  }

  void open_group() {
    if (groups_.size() > 100) fail("nests groups too deeply");
    if (starts("(*")) fail("uses a verb");
    if (!starts("(?")) {
      groups_.push_back(out_.size());
      out_ += in_[at_++];
      return;
    }
    std::size_t end = at_ + 2;
    while (end < in_.size() && (std::isalpha(static_cast<unsigned char>(in_[end])) || in_[end] == '-')) ++end;
    const bool flags = end < in_.size() && (in_[end] == ':' || in_[end] == ')');
    if (!flags) {  // a look-around, an atomic or a named group: PCRE2 writes them alike
      if (starts("(?#") || starts("(?(") || starts("(?R") || starts("(?C"))
        fail("uses a group we do not read");
      groups_.push_back(out_.size());
      out_ += "(?";
      at_ += 2;
      if (peek() == 'P') ++at_;
      while (peek() == '<' || peek() == '=' || peek() == '!' || peek() == '>') {
        out_ += in_[at_++];
      }
      return;
    }
    std::string letters(in_.substr(at_ + 2, end - at_ - 2));
    if (letters.find_first_not_of(oniguruma() ? "imx-" : "imsxU-") != std::string::npos)
      fail("has a group with an option that its dialect does not have");
    if (oniguruma()) std::replace(letters.begin(), letters.end(), 'm', 's');  // m: the dot takes newlines
    const bool scoped = in_[end] == ':';
    if (scoped) groups_.push_back(out_.size());
    out_ += "(?" + letters + (scoped ? ":" : ")");
    at_ = end + 1;
    if (!scoped) atom_.reset();
  }

  // A set that a backslash names, or nothing; `at_` is behind it then.
  std::optional<CharacterSet> named_set(bool in_class) {
    const char kind = peek(1);
    const auto set = [&](std::string_view items, bool negated) {
      at_ += 2;
      return CharacterSet{std::string(items), {}, negated, {}};
    };
    switch (kind) {
      case 's': return set(kSpace, false);
      case 'S': return set(kSpace, true);
      case 'w': return set(word(in_class), false);
      case 'W': return set(word(in_class), true);
      case 'd': return set("\\p{Nd}", false);
      case 'D': return set("\\p{Nd}", true);
      case 'h':
      case 'H':
        if (!oniguruma()) fail("uses \\h, which Rust's dialect does not have");
        return set(kHex, kind == 'H');
      case 'p':
      case 'P':
        if (oniguruma() && peek(2) != '{') return set(kind == 'p' ? "p" : "P", false);  // \pL: "pL"
        return property(in_class);
      default: return std::nullopt;
    }
  }

  CharacterSet property(bool in_class) {
    bool negated = peek(1) == 'P';
    at_ += 2;
    std::string_view name;
    if (peek() == '{') {
      const std::size_t end = in_.find('}', at_);
      if (end == std::string_view::npos) fail("leaves \\p{ open");
      name = in_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
    } else {
      name = in_.substr(at_, 1);
      at_ += name.size();
    }
    if (name.starts_with("^")) {
      negated = !negated;
      name.remove_prefix(1);
    }
    const auto plain = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ' ' || c == '-' || c == ':' ||
             c == '=' || c == '&';
    };
    if (name.empty() || !std::all_of(name.begin(), name.end(), plain)) fail("has a property without a name");
    return {property_items(name, in_class), {}, negated, {}};
  }

  // At "[:name:]" or "[:^name:]" within a class.
  CharacterSet posix_class() {
    const std::size_t end = in_.find(":]", at_);
    std::string_view name = in_.substr(at_ + 2, end - at_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    at_ = end + 2;
    for (const NamedClass& known : kAsciiClasses) {
      if (known.name != name) continue;
      if (!oniguruma()) return {std::string(known.meaning), {}, negated, {}};
      // Symbols are punctuation here, though not in \p{Punct}.
      return {property_items(name, true) + (name == "punct" ? "\\p{S}" : ""), {}, negated, {}};
    }
    fail("names a class that there is not");
  }

  // An escaped single character, in PCRE2's words; `at_` is behind it then.
  std::string escaped_character() {
    const char kind = peek(1);
    if (kind == '\0') fail("ends in a backslash");
    if (kind == 'v' && oniguruma()) return at_ += 2, "\\x{0B}";
    if (kind == 'u' || kind == 'U') {
      const std::size_t digits = kind == 'u' ? 4 : 8;
      if (peek(2) == '{') {
        const std::size_t end = in_.find('}', at_);
        if (end == std::string_view::npos) fail("leaves \\u{ open");
        const std::string code(in_.substr(at_ + 3, end - at_ - 3));
        return at_ = end + 1, "\\x{" + code + "}";
      }
      const std::string code(in_.substr(at_ + 2, digits));
      return at_ = std::min(in_.size(), at_ + 2 + digits), "\\x{" + code + "}";
    }
    const std::size_t length = 1 + unicode::character_at(in_, at_ + 1).length;
    std::string text(in_.substr(at_, length));
    at_ += length;
    if (kind == 'x' && peek() == '{') {
      const std::size_t end = in_.find('}', at_);
      if (end == std::string_view::npos) fail("leaves \\x{ open");
      text += in_.substr(at_, end + 1 - at_);
      at_ = end + 1;
    }
    return text;
  }

  void escape() {
    if (const auto set = named_set(false)) return atom(set->expression());
    atom(escaped_character());
  }

  // At '['. Classes nest, and `&&` intersects what stands left and right of it.
  CharacterSet read_class(int depth) {
    if (depth > kDeepest) fail("nests character classes too deeply");
    ++at_;
    CharacterSet set, operand;
    if (peek() == '^') {
      set.negated = true;
      ++at_;
    }
    std::vector<CharacterSet> operands;
    bool first = true;
    for (;; first = false) {
      if (at_ >= in_.size()) fail("leaves a character class open");
      if (peek() == ']' && !first) break;
      if (starts("&&")) {
        at_ += 2;
        operands.push_back(std::move(operand));
        operand = {};
      } else if (starts("[:") && in_.find(":]", at_) != std::string_view::npos) {
        merge(operand, posix_class());
      } else if (peek() == '[') {
        merge(operand, read_class(depth + 1));
      } else if (peek() == '\\') {
        if (const auto named = named_set(true))
          merge(operand, *named);
        else
          operand.items += escaped_character();
      } else {
        const std::size_t length = unicode::character_at(in_, at_).length;
        if (peek() == ']') operand.items += '\\';
        operand.items += in_.substr(at_, length);
        at_ += length;
      }
    }
    ++at_;
    set.items = std::move(operand.items);
    set.others = std::move(operand.others);
    for (const CharacterSet& other : operands) set.and_also.push_back(other.positive());
    return set;
  }

  static void merge(CharacterSet& into, const CharacterSet& set) {
    if (set.simple() && !set.negated)
      into.items += set.items;
    else
      into.others.push_back(set.expression());
  }

  std::string_view in_;
  RegexDialect dialect_;
  std::size_t at_ = 0;
  std::string out_;
  std::optional<std::size_t> atom_;  // where the last thing that can be repeated begins in out_
  std::vector<std::size_t> groups_;  // where open groups begin in out_
};

}  // namespace

std::string translate_regex(std::string_view pattern, RegexDialect dialect) {
  return Translator(pattern, dialect).translate();
}

}  // namespace assay
