#include "refimpl/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "refimpl/jinja/session.h"

namespace assay::jinja {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool between(utf8proc_category_t c, utf8proc_category_t first, utf8proc_category_t last) {
  return c >= first && c <= last;
}

bool is_one_of(std::string_view characters, char32_t c) {
  for (std::size_t at = 0; at < characters.size();) {
    if (next_character(characters, at) == c) return true;
  }
  return false;
}

}  // namespace

char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<char32_t>(static_cast<unsigned char>(text[i])) : 0;
  };
  const char32_t first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t c = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) c = c << 6 | (byte(at + i) & 0x3F);
  at += length;
  return c;
}

void append_character(std::string& text, char32_t c) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6), tail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12), tail(6), tail(0);
  } else {
    text += static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0);
  }
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::size_t byte_of_character(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((text[at] & 0xC0) != 0x80 && index-- == 0) break;
  }
  count_copy(at);
  return at;
}

std::vector<char32_t> characters(std::string_view text) {
  std::vector<char32_t> all;
  count_copy(4 * text.size());
  for (std::size_t at = 0; at < text.size();) all.push_back(next_character(text, at));
  return all;
}

std::string from_characters(const std::vector<char32_t>& characters) {
  std::string text;
  for (const char32_t c : characters) append_character(text, c);
  return text;
}

bool has_half_surrogate(std::string_view text) {
  for (std::size_t at = text.find('\xED'); at != std::string_view::npos; at = text.find('\xED', at + 1)) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xA0) return true;
  }
  return false;
}

// ------------------------------------------------------------------------------------------- classes

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0x2028 || c == 0x2029 || category(c) == UTF8PROC_CATEGORY_ZS;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const utf8proc_category_t kind = category(c);
  return kind != UTF8PROC_CATEGORY_CN && !between(kind, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_CO);
}

bool is_alphabetic(char32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}

bool is_decimal(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

// Beside decimal digits those of Numeric_Type=Digit: superscripts, subscripts, circled and other ones.
bool is_digit(char32_t c) {
  static constexpr char32_t kRanges[][2] = {
      {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
      {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
      {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
      {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
  if (is_decimal(c)) return true;
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](const char32_t(&range)[2]) { return c >= range[0] && c <= range[1]; });
}

// Han characters that are numbers (Unihan's kPrimaryNumeric and its like) beside the categories of numbers.
bool is_numeric(char32_t c) {
  static constexpr std::u32string_view kHan =
      U"一七万三九二五亖亿什仟仨伍佰億兆兩八六十千卄卅卌参參叁叄四壱壹弌弍弎弐拾捌柒漆玖百肆萬貮貳贰阡陆陌陸"
      U"零〇";
  return between(category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO) || kHan.find(c) != kHan.npos;
}

bool is_word(char32_t c) {
  return c == '_' || is_alphabetic(c) || is_numeric(c);
}

bool is_identifier_start(char32_t c) {
  return c == '_' || is_alphabetic(c) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return is_identifier_start(c) || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_MN ||
         kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_PC || c == 0xB7 || c == 0x387;
}

// Other_Lowercase beside Ll: ordinals, modifier letters, small Roman numerals, circled small letters.
bool is_lower(char32_t c) {
  if (category(c) == UTF8PROC_CATEGORY_LL) return true;
  return c == 0xAA || c == 0xBA || (c >= 0x2B0 && c <= 0x2B8) || c == 0x2C0 || c == 0x2C1 ||
         (c >= 0x2E0 && c <= 0x2E4) || c == 0x345 || c == 0x37A || (c >= 0x1D2C && c <= 0x1D6A) ||
         c == 0x1D78 || (c >= 0x1D9B && c <= 0x1DBF) || c == 0x2071 || c == 0x207F ||
         (c >= 0x2090 && c <= 0x209C) || (c >= 0x2170 && c <= 0x217F) || (c >= 0x24D0 && c <= 0x24E9);
}

bool is_upper(char32_t c) {
  if (category(c) == UTF8PROC_CATEGORY_LU) return true;
  return (c >= 0x2160 && c <= 0x216F) || (c >= 0x24B6 && c <= 0x24CF) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool is_titlecase(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}

// ------------------------------------------------------------------------------------------- strings

std::string_view stripped(std::string_view text, Side side, std::optional<std::string_view> characters) {
  const auto goes = [&](char32_t c) { return characters ? is_one_of(*characters, c) : is_space(c); };
  count_copy(text.size() * (characters ? 1 + characters->size() / 8 : 1));
  std::size_t begin = 0, end = text.size();
  while (side != Side::right && begin < end) {
    std::size_t at = begin;
    if (!goes(next_character(text, at))) break;
    begin = at;
  }
  while (side != Side::left && begin < end) {
    std::size_t at = end - 1;
    while (at > begin && (text[at] & 0xC0) == 0x80) --at;
    const std::size_t last = at;
    if (!goes(next_character(text, at))) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

std::vector<std::string_view> split_words(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> words;
  count_copy(text.size());
  std::string_view rest = stripped(text, Side::left);
  while (!rest.empty() && most-- != 0) {
    std::size_t at = 0, end = 0;
    while (end < rest.size() && !is_space(next_character(rest, at))) end = at;
    words.push_back(rest.substr(0, end));
    rest = stripped(rest.substr(end), Side::left);
  }
  if (!rest.empty()) words.push_back(rest);  // what `most` leaves, its blanks behind it included
  return words;
}

std::vector<std::string_view> split_words_from_right(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> words;
  std::string_view rest = stripped(text, Side::right);
  while (!rest.empty() && most-- != 0) {
    std::size_t begin = rest.size();
    while (begin > 0) {
      std::size_t last = begin - 1;
      while (last > 0 && (rest[last] & 0xC0) == 0x80) --last;
      std::size_t at = last;
      if (is_space(next_character(rest, at))) break;
      begin = last;
    }
    words.push_back(rest.substr(begin));
    rest = stripped(rest.substr(0, begin), Side::right);
  }
  if (!rest.empty()) words.push_back(rest);
  std::reverse(words.begin(), words.end());
  return words;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  count_copy(text.size());
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const char32_t c = next_character(text, at);
    if (!is_line_break(c)) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string escaped_for_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '\'': escaped += "&#39;"; break;
      case '"': escaped += "&#34;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view with, std::int64_t most) {
  Buffer out;
  std::size_t from = 0, search = 0;
  while (most-- != 0) {
    const std::size_t at = text.find(old, search);
    if (at == std::string_view::npos || at > text.size()) break;
    out.append(text.substr(from, at - from));
    out.append(with);
    count_work(1);
    from = at + old.size();
    search = from;
    if (old.empty()) {  // between all characters, and at both ends
      if (at == text.size()) break;
      next_character(text, search);
      out.append(text.substr(from, search - from));
      from = search;
    }
  }
  out.append(text.substr(std::min(from, text.size())));
  return out.take();
}

}  // namespace assay::jinja
