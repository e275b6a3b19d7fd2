// Reading UTF-8 one character at a time.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay {

// The character that `text`, which must not be empty, begins with; length 0: it begins with no valid UTF-8
// (Table 3-7 of the Unicode Standard: no overlong forms, no surrogates, nothing above U+10FFFF).
struct Utf8Character {
  char32_t code = 0;
  std::size_t length = 0;
};
Utf8Character first_character(std::string_view text);

}  // namespace assay
