// A regular expression of JSON Schema, read and written anew as GBNF, one function a construct.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/system/error.h"
#include "refimpl/grammar/schema_parts.h"
#include "refimpl/grammar/utf8.h"

namespace assay::grammar {
namespace {

constexpr int kDeepestGroup = 50;
constexpr std::uint32_t kMostTimes = 10'000;

using Ranges = std::vector<CodeRange>;
const Ranges kDigits = {{'0', '9'}};
const Ranges kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace = {{'\t', '\r'}, {' ', ' '}};
const Ranges kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
const Ranges kAscii = {{0x20, 0x7E}};

Ranges both(const Ranges& a, const Ranges& b) {
  Ranges joined = complement(tidy(a));
  const Ranges other = complement(tidy(b));
  joined.insert(joined.end(), other.begin(), other.end());
  return complement(tidy(std::move(joined)));
}

// Classes by what they leave out have no control characters: each would be a way of its own to write.
Ranges without(const Ranges& ranges, const Ranges& universe = {{0x20, 0x10FFFF}}) {
  return both(complement(tidy(ranges)), universe);
}

// The characters as a JSON string holds them.
std::string in_json(const Ranges& wanted) {
  const Ranges ranges = tidy(wanted);
  std::vector<std::string> ways;
  if (const Ranges bare = both(ranges, complement(tidy({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}})));
      !bare.empty())
    ways.push_back(gbnf_class(bare));
  for (const std::uint32_t c : {std::uint32_t{'"'}, std::uint32_t{'\\'}})
    if (!both(ranges, {{c, c}}).empty())
      ways.push_back(gbnf_literal(fmt::format("\\{}", static_cast<char>(c))));
  for (std::uint32_t c = 0; c < 0x20; ++c)
    if (!both(ranges, {{c, c}}).empty()) ways.push_back(gbnf_literal(fmt::format("\\u{:04x}", c)));
  return ways.size() == 1 ? ways.front() : fmt::format("( {} )", fmt::join(ways, " | "));
}

class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text) {}

  std::string run() {
    std::vector<std::string> ways;
    do {
      const std::string before = take('^') ? "" : "char* ";
      std::string middle = sequence(0);
      const std::string after = take('$') ? "" : " char*";
      if (after.empty() && !at_end() && peek() != '|') fail("$ within it");
      ways.push_back(before + middle + after);
    } while (take('|'));
    if (!at_end()) fail(fmt::format("'{}' without its beginning", peek()));
    return fmt::format("{}", fmt::join(ways, " | "));
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error::input(fmt::format("the pattern's {} (at byte {}) is not supported", what, at_));
  }
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string choice(int depth) {
    std::string all = sequence(depth);
    while (take('|')) all += " | " + sequence(depth);
    return all;
  }

  std::string sequence(int depth) {
    std::string all;
    while (!at_end() && peek() != '|' && peek() != ')' && peek() != '$') {
      std::string item = atom(depth);
      item += times();
      all += (all.empty() ? "" : " ") + item;
    }
    if (depth > 0 && peek() == '$') fail("$ within it");
    return all.empty() ? "\"\"" : all;
  }

  std::string times() {
    std::string out;
    if (peek() == '?' || peek() == '*' || peek() == '+') {
      out = std::string(1, text_[at_++]);
    } else if (take('{')) {
      const std::uint32_t least = number();
      out = fmt::format("{{{}", least);
      if (take(',')) {
        out += ",";
        if (peek() != '}') {
          const std::uint32_t most = number();
          if (most < least) fail("repetition whose most is below its least");
          out += std::to_string(most);
        }
      }
      if (!take('}')) fail("{");
      out += "}";
    }
    if (!out.empty()) take('?');  // as few as possible: the same texts
    if (!out.empty() && (peek() == '+' || peek() == '*' || peek() == '{')) fail("repetition of a repetition");
    return out;
  }

  std::uint32_t number() {
    std::uint64_t value = 0;
    const std::size_t begin = at_;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = 10 * value + static_cast<std::uint64_t>(peek() - '0');
      if (value > kMostTimes) fail("count of repetitions");
    }
    if (at_ == begin) fail("{");
    return static_cast<std::uint32_t>(value);
  }

  std::string atom(int depth) {
    if (take('(')) {
      if (depth >= kDeepestGroup) fail("nesting");
      if (take('?') && !take(':')) fail("group (?…)");
      std::string inner = choice(depth + 1);
      if (!take(')')) fail("group without an end");
      return fmt::format("( {} )", inner);
    }
    if (take('[')) return in_json(character_class());
    if (take('.')) return in_json(without(kLineEnds));
    const char c = peek();
    if (c == '^' || c == '*' || c == '+' || c == '?' || c == '{' || c == '}' || c == ']')
      fail(fmt::format("'{}' here", c));
    if (take('\\')) return in_json(escape());
    const std::uint32_t plain = code_point();
    return in_json({{plain, plain}});
  }

  std::uint32_t code_point() {
    const auto c = next_code_point(text_, at_);
    if (!c) fail("text, which is no UTF-8,");
    return *c;
  }

  Ranges character_class() {
    const bool negated = take('^');
    Ranges ranges;
    while (!take(']')) {
      if (at_end()) fail("class without an end");
      const Ranges first = member();
      const bool is_range = peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!is_range) {
        ranges.insert(ranges.end(), first.begin(), first.end());
        continue;
      }
      ++at_;
      const Ranges last = member();
      const auto single = [](const Ranges& r) { return r.size() == 1 && r[0].first == r[0].last; };
      if (!single(first) || !single(last) || last[0].last < first[0].first) fail("range of a class");
      ranges.push_back({first[0].first, last[0].last});
    }
    if (ranges.empty()) fail("empty class");
    ranges = negated ? without(ranges) : tidy(std::move(ranges));
    if (ranges.empty()) fail("class of nothing");
    return ranges;
  }

  Ranges member() {
    if (take('\\')) return escape();
    const std::uint32_t c = code_point();
    return {{c, c}};
  }

  Ranges escape() {
    if (at_end()) fail("\\ at its end");
    const char c = text_[at_++];
    const auto one = [](std::uint32_t x) { return Ranges{{x, x}}; };
    switch (c) {
      case 'd': return kDigits;
      case 'w': return kWord;
      case 's': return kSpace;
      case 'D': return without(kDigits, kAscii);
      case 'W': return without(kWord, kAscii);
      case 'S': return without(kSpace, kAscii);
      case 't': return one('\t');
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 'f': return one('\f');
      case 'v': return one('\v');
      case 'x': return one(hexadecimal(2));
      case 'u': return one(hexadecimal(4));
      default: break;
    }
    const auto byte = static_cast<unsigned char>(c);
    const bool is_mark = byte > 0x20 && byte < 0x7F && !std::isalnum(byte) && c != '_';
    if (!is_mark) fail(fmt::format("escape \\{}", byte > 0x20 && byte < 0x7F ? c : '?'));
    return one(byte);
  }

  std::uint32_t hexadecimal(int digits) {
    std::uint32_t value = 0;
    for (; digits > 0; --digits, ++at_) {
      const char c = peek();
      if (!std::isxdigit(static_cast<unsigned char>(c))) fail("escape");
      value = value << 4 | static_cast<std::uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (tidy({{value, value}}).empty()) fail("half of a surrogate pair");
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string gbnf_of_pattern(std::string_view pattern) {
  return PatternReader(pattern).run();
}

}  // namespace assay::grammar
