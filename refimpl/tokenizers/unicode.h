// Unicode as tokenizers need it: characters of text that may hold stray bytes, their classes, normal forms.
//
// A byte that belongs to no valid UTF-8 travels through every stage as it is: a character of length 1 that is
// in no class. Models that know bytes keep it; the others take it for an unknown character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay::unicode {

struct Character {
  char32_t code = 0;
  std::size_t length = 1;  // in bytes
  bool valid = true;       // false: a stray byte; `code` is U+FFFD
};
Character long_character_at(std::string_view text, std::size_t at);  // of more than one byte, or a stray one
inline Character character_at(std::string_view text, std::size_t at) {  // at < text.size()
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte < 0x80 ? Character{byte, 1, true} : long_character_at(text, at);
}
void append(std::string& text, char32_t code);

// Calls visit(character, its bytes) from the first to the last.
template <class Visit>
void for_each_character(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    visit(c, text.substr(at, c.length));
    at += c.length;
  }
}

// The length of the longest prefix of `text` that is valid UTF-8.
std::size_t valid_prefix(std::string_view text);
// The length of the character that `text` begins with and breaks off in the midst of; 0 when more bytes
// could not make it one. "\xE2\x96" -> 2, "\xE2\x28" -> 0.
std::size_t incomplete_prefix(std::string_view text);
// Each maximal ill-formed part becomes one U+FFFD (Unicode Standard, 3.9, "U+FFFD Substitution").
std::string with_replacements(std::string_view bytes);

bool is_whitespace(char32_t c);         // White_Space
bool is_letter(char32_t c);             // L*
bool is_numeric(char32_t c);            // N*
bool is_punctuation(char32_t c);        // P*
bool is_ascii_punctuation(char32_t c);  // !-/ :-@ [-` {-~
bool is_mark(char32_t c);               // M*
bool is_nonspacing_mark(char32_t c);    // Mn
bool is_control(char32_t c);            // Cc, Cf, Co
bool is_word(char32_t c);               // \w of UTS #18: Alphabetic, M, Nd, Pc, Join_Control
bool is_cjk(char32_t c);                // the ideographs that BERT sets apart

// Appends the lower case of one character without regard to its neighbours.
void append_lower(std::string& text, char32_t c);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
std::string normalized(std::string_view text, NormalForm form);

// Bytes of the extended grapheme cluster that `text`, not empty, begins with; a stray byte is one of its own.
std::size_t grapheme_length(std::string_view text);

}  // namespace assay::unicode
