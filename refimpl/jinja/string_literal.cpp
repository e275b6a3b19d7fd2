#include "refimpl/jinja/string_literal.h"

#include <fmt/format.h>

#include <charconv>

#include "refimpl/jinja/lexer.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

class Unescaper {
 public:
  Unescaper(std::string_view literal, int line) : rest_(literal), line_(line) {}

  std::string run() {
    while (!rest_.empty()) {
      const std::size_t plain = std::min(rest_.find('\\'), rest_.size());
      out_ += rest_.substr(0, plain);
      rest_.remove_prefix(plain);
      if (!rest_.empty()) escape();
    }
    return std::move(out_);
  }

 private:
  void escape() {
    rest_.remove_prefix(1);
    if (rest_.empty()) fail_at(line_, "\\ at end of string");
    static constexpr std::string_view kLetters = "\\'\"abfnrtv", kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const char letter = rest_.front();
    if (const auto known = kLetters.find(letter); known != std::string_view::npos) {
      out_ += kMeanings[known];
      rest_.remove_prefix(1);
    } else if (letter == '\n') {
      rest_.remove_prefix(1);  // the line goes on
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      hexadecimal(letter == 'x' ? 2 : letter == 'u' ? 4 : 8);
    } else if (letter >= '0' && letter <= '7') {
      octal();
    } else if (letter == 'N') {
      fail_at(line_, "\\N{…} in a string is not supported: write the character itself");
    } else {
      unknown();
    }
  }

  void hexadecimal(std::size_t digits) {
    std::uint32_t code = 0;
    const std::string_view text = rest_.substr(1, digits);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
    if (text.size() != digits || error != std::errc() || end != text.data() + digits || code > 0x10FFFF)
      fail_at(line_,
              fmt::format("a \\{} escape wants {} hexadecimal digits of a character", rest_.front(), digits));
    append_character(out_, code);
    rest_.remove_prefix(1 + digits);
  }

  void octal() {
    char32_t code = 0;
    for (int i = 0; i < 3 && !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '7'; ++i) {
      code = code * 8 + static_cast<char32_t>(rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    append_character(out_, code);
  }

  // The backslash stays. Jinja writes what is not ASCII as an escape before it unescapes, so that behind a
  // backslash such a character comes out as the text of its escape.
  void unknown() {
    out_ += '\\';
    std::size_t length = 0;
    const auto code = static_cast<std::uint32_t>(next_character(rest_, length));
    if (code < 0x80) {
      out_ += rest_.front();
    } else {
      out_ += code < 0x100     ? fmt::format("x{:02x}", code)
              : code < 0x10000 ? fmt::format("u{:04x}", code)
                               : fmt::format("U{:08x}", code);
    }
    rest_.remove_prefix(length);
  }

  std::string_view rest_;
  int line_;
  std::string out_;
};

}  // namespace

std::string unescape_literal(std::string_view literal, int line) {
  return Unescaper(literal, line).run();
}

}  // namespace assay::jinja
