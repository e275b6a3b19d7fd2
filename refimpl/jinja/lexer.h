// A template's text as tokens: data between tags, and names, literals and operators inside them.
//
// White space goes where Jinja takes it away under trim_blocks and lstrip_blocks: the line break behind a block or
// comment, the blanks before one that stands first on its line, and all of it beside a tag with a '-'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "refimpl/jinja/value.h"

namespace assay::jinja {

struct Whitespace {
  bool trim_blocks = true, lstrip_blocks = true, keep_trailing_newline = false;
};

enum class TokenType : std::uint8_t {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  number,
  symbol,  // an operator or a bracket
  end,
};

struct Token {
  TokenType type = TokenType::end;
  int line = 1;
  std::string text;  // of a name, a string (unescaped), a symbol, data
  Value number;
};

// "begin of print statement", "}}" …: as an error names it.
std::string describe(const Token& token);

// Throws Error::input with a line where the text is no template: a string without end, a stray character.
std::vector<Token> tokenize(std::string_view source, const Whitespace& whitespace);

// An error of the template's text.
[[noreturn]] void fail_at(int line, std::string_view what);

}  // namespace assay::jinja
