#include "refimpl/tokenizers/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/system/error.h"
#include "core/system/utf8.h"

namespace assay::unicode {
namespace {

unsigned char byte(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool in_range(char32_t c, char32_t first, char32_t last) {
  return c >= first && c <= last;
}

// Alphabetic symbols (So): circled and squared Latin letters.
bool is_alphabetic_symbol(char32_t c) {
  return in_range(c, 0x24B6, 0x24E9) || in_range(c, 0x1F130, 0x1F149) || in_range(c, 0x1F150, 0x1F169) ||
         in_range(c, 0x1F170, 0x1F189);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void append_normalized(std::string& result, std::string_view valid, utf8proc_option_t options) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                               static_cast<utf8proc_ssize_t>(valid.size()), &mapped, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (length < 0) throw Error::input(std::string("text cannot be normalized: ") + utf8proc_errmsg(length));
  result.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
}

}  // namespace

Character long_character_at(std::string_view text, std::size_t at) {
  const Utf8Character c = first_character(text.substr(at));
  if (c.length == 0) return {0xFFFD, 1, false};
  return {c.code, c.length, true};
}

void append(std::string& text, char32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

std::size_t valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (!c.valid) break;
    at += c.length;
  }
  return at;
}

std::size_t incomplete_prefix(std::string_view text) {
  if (text.empty() || byte(text, 0) < 0xC2 || byte(text, 0) > 0xF4) return 0;
  const unsigned char lead = byte(text, 0);
  const std::size_t whole = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Table 3-7: the second byte's range depends on the first.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  std::size_t have = 1;
  if (have < text.size() && (byte(text, 1) < low || byte(text, 1) > high)) return 0;
  while (have < text.size() && have < whole && (byte(text, have) & 0xC0) == 0x80) ++have;
  return have == text.size() && have < whole ? have : 0;
}

std::string with_replacements(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t valid = valid_prefix(bytes);
    result += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    // The longest beginning of a character; a byte that begins none stands alone.
    std::size_t bad = 1;
    while (bad < std::min<std::size_t>(bytes.size(), 3) &&
           incomplete_prefix(bytes.substr(0, bad + 1)) == bad + 1) {
      ++bad;
    }
    result += "\xEF\xBF\xBD";
    bytes.remove_prefix(bad);
  }
  return result;
}

bool is_whitespace(char32_t c) {
  return in_range(c, 0x09, 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         in_range(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_letter(char32_t c) {
  return in_range(category(c), UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}

bool is_numeric(char32_t c) {
  return in_range(category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_punctuation(char32_t c) {
  return in_range(category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_ascii_punctuation(char32_t c) {
  return in_range(c, '!', '/') || in_range(c, ':', '@') || in_range(c, '[', '`') || in_range(c, '{', '~');
}

bool is_mark(char32_t c) {
  return in_range(category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME);
}

bool is_nonspacing_mark(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_MN;
}

bool is_control(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CO;
}

bool is_word(char32_t c) {
  const auto kind = category(c);
  return is_letter(c) || is_mark(c) || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_PC || is_alphabetic_symbol(c) || c == 0x200C || c == 0x200D;
}

bool is_cjk(char32_t c) {
  return in_range(c, 0x4E00, 0x9FFF) || in_range(c, 0x3400, 0x4DBF) || in_range(c, 0x20000, 0x2A6DF) ||
         in_range(c, 0x2A700, 0x2B73F) || in_range(c, 0x2B740, 0x2B81F) ||
         in_range(c, 0x2B920, 0x2CEAF) ||  // from 0x2B820 on in BERT itself; the tokenizers crate has this
         in_range(c, 0xF900, 0xFAFF) || in_range(c, 0x2F800, 0x2FA1F);
}

void append_lower(std::string& text, char32_t c) {
  if (c == 0x130) {  // the one unconditional lower case of two characters (SpecialCasing.txt)
    text += "i\xCC\x87";
    return;
  }
  append(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::string normalized(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  int options = UTF8PROC_STABLE;
  options |= form == NormalForm::nfc || form == NormalForm::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  std::string result;
  while (!text.empty()) {
    const std::size_t valid = valid_prefix(text);
    if (valid > 0) append_normalized(result, text.substr(0, valid), static_cast<utf8proc_option_t>(options));
    if (valid < text.size()) result += text[valid];
    text.remove_prefix(std::min(valid + 1, text.size()));
  }
  return result;
}

std::size_t grapheme_length(std::string_view text) {
  Character previous = character_at(text, 0);
  std::size_t length = previous.length;
  utf8proc_int32_t state = 0;
  while (previous.valid && length < text.size()) {
    const Character next = character_at(text, length);
    if (!next.valid || utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous.code),
                                                        static_cast<utf8proc_int32_t>(next.code), &state)) {
      break;
    }
    length += next.length;
    previous = next;
  }
  return length;
}

}  // namespace assay::unicode
