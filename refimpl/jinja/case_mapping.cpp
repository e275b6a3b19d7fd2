// Upper, lower and title case as Python's str has them: the full mappings of Unicode's SpecialCasing.txt, those
// that depend on no language.
#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "refimpl/jinja/session.h"
#include "refimpl/jinja/unicode.h"

namespace assay::jinja {
namespace {

// Characters that become several ones in upper or title case.
struct LongCase {
  char32_t code;
  std::u32string_view upper, title;
};
constexpr LongCase kLongCases[] = {
    {0xDF, U"SS", U"Ss"},
    {0x149, U"\u02BCN", U"\u02BCN"},
    {0x1F0, U"J\u030C", U"J\u030C"},
    {0x390, U"\u0399\u0308\u0301", U"\u0399\u0308\u0301"},
    {0x3B0, U"\u03A5\u0308\u0301", U"\u03A5\u0308\u0301"},
    {0x587, U"\u0535\u0552", U"\u0535\u0582"},
    {0x1E96, U"H\u0331", U"H\u0331"},
    {0x1E97, U"T\u0308", U"T\u0308"},
    {0x1E98, U"W\u030A", U"W\u030A"},
    {0x1E99, U"Y\u030A", U"Y\u030A"},
    {0x1E9A, U"A\u02BE", U"A\u02BE"},
    {0x1F50, U"\u03A5\u0313", U"\u03A5\u0313"},
    {0x1F52, U"\u03A5\u0313\u0300", U"\u03A5\u0313\u0300"},
    {0x1F54, U"\u03A5\u0313\u0301", U"\u03A5\u0313\u0301"},
    {0x1F56, U"\u03A5\u0313\u0342", U"\u03A5\u0313\u0342"},
    {0x1F80, U"\u1F08\u0399", U"\u1F88"},
    {0x1F81, U"\u1F09\u0399", U"\u1F89"},
    {0x1F82, U"\u1F0A\u0399", U"\u1F8A"},
    {0x1F83, U"\u1F0B\u0399", U"\u1F8B"},
    {0x1F84, U"\u1F0C\u0399", U"\u1F8C"},
    {0x1F85, U"\u1F0D\u0399", U"\u1F8D"},
    {0x1F86, U"\u1F0E\u0399", U"\u1F8E"},
    {0x1F87, U"\u1F0F\u0399", U"\u1F8F"},
    {0x1F88, U"\u1F08\u0399", U"\u1F88"},
    {0x1F89, U"\u1F09\u0399", U"\u1F89"},
    {0x1F8A, U"\u1F0A\u0399", U"\u1F8A"},
    {0x1F8B, U"\u1F0B\u0399", U"\u1F8B"},
    {0x1F8C, U"\u1F0C\u0399", U"\u1F8C"},
    {0x1F8D, U"\u1F0D\u0399", U"\u1F8D"},
    {0x1F8E, U"\u1F0E\u0399", U"\u1F8E"},
    {0x1F8F, U"\u1F0F\u0399", U"\u1F8F"},
    {0x1F90, U"\u1F28\u0399", U"\u1F98"},
    {0x1F91, U"\u1F29\u0399", U"\u1F99"},
    {0x1F92, U"\u1F2A\u0399", U"\u1F9A"},
    {0x1F93, U"\u1F2B\u0399", U"\u1F9B"},
    {0x1F94, U"\u1F2C\u0399", U"\u1F9C"},
    {0x1F95, U"\u1F2D\u0399", U"\u1F9D"},
    {0x1F96, U"\u1F2E\u0399", U"\u1F9E"},
    {0x1F97, U"\u1F2F\u0399", U"\u1F9F"},
    {0x1F98, U"\u1F28\u0399", U"\u1F98"},
    {0x1F99, U"\u1F29\u0399", U"\u1F99"},
    {0x1F9A, U"\u1F2A\u0399", U"\u1F9A"},
    {0x1F9B, U"\u1F2B\u0399", U"\u1F9B"},
    {0x1F9C, U"\u1F2C\u0399", U"\u1F9C"},
    {0x1F9D, U"\u1F2D\u0399", U"\u1F9D"},
    {0x1F9E, U"\u1F2E\u0399", U"\u1F9E"},
    {0x1F9F, U"\u1F2F\u0399", U"\u1F9F"},
    {0x1FA0, U"\u1F68\u0399", U"\u1FA8"},
    {0x1FA1, U"\u1F69\u0399", U"\u1FA9"},
    {0x1FA2, U"\u1F6A\u0399", U"\u1FAA"},
    {0x1FA3, U"\u1F6B\u0399", U"\u1FAB"},
    {0x1FA4, U"\u1F6C\u0399", U"\u1FAC"},
    {0x1FA5, U"\u1F6D\u0399", U"\u1FAD"},
    {0x1FA6, U"\u1F6E\u0399", U"\u1FAE"},
    {0x1FA7, U"\u1F6F\u0399", U"\u1FAF"},
    {0x1FA8, U"\u1F68\u0399", U"\u1FA8"},
    {0x1FA9, U"\u1F69\u0399", U"\u1FA9"},
    {0x1FAA, U"\u1F6A\u0399", U"\u1FAA"},
    {0x1FAB, U"\u1F6B\u0399", U"\u1FAB"},
    {0x1FAC, U"\u1F6C\u0399", U"\u1FAC"},
    {0x1FAD, U"\u1F6D\u0399", U"\u1FAD"},
    {0x1FAE, U"\u1F6E\u0399", U"\u1FAE"},
    {0x1FAF, U"\u1F6F\u0399", U"\u1FAF"},
    {0x1FB2, U"\u1FBA\u0399", U"\u1FBA\u0345"},
    {0x1FB3, U"\u0391\u0399", U"\u1FBC"},
    {0x1FB4, U"\u0386\u0399", U"\u0386\u0345"},
    {0x1FB6, U"\u0391\u0342", U"\u0391\u0342"},
    {0x1FB7, U"\u0391\u0342\u0399", U"\u0391\u0342\u0345"},
    {0x1FBC, U"\u0391\u0399", U"\u1FBC"},
    {0x1FC2, U"\u1FCA\u0399", U"\u1FCA\u0345"},
    {0x1FC3, U"\u0397\u0399", U"\u1FCC"},
    {0x1FC4, U"\u0389\u0399", U"\u0389\u0345"},
    {0x1FC6, U"\u0397\u0342", U"\u0397\u0342"},
    {0x1FC7, U"\u0397\u0342\u0399", U"\u0397\u0342\u0345"},
    {0x1FCC, U"\u0397\u0399", U"\u1FCC"},
    {0x1FD2, U"\u0399\u0308\u0300", U"\u0399\u0308\u0300"},
    {0x1FD3, U"\u0399\u0308\u0301", U"\u0399\u0308\u0301"},
    {0x1FD6, U"\u0399\u0342", U"\u0399\u0342"},
    {0x1FD7, U"\u0399\u0308\u0342", U"\u0399\u0308\u0342"},
    {0x1FE2, U"\u03A5\u0308\u0300", U"\u03A5\u0308\u0300"},
    {0x1FE3, U"\u03A5\u0308\u0301", U"\u03A5\u0308\u0301"},
    {0x1FE4, U"\u03A1\u0313", U"\u03A1\u0313"},
    {0x1FE6, U"\u03A5\u0342", U"\u03A5\u0342"},
    {0x1FE7, U"\u03A5\u0308\u0342", U"\u03A5\u0308\u0342"},
    {0x1FF2, U"\u1FFA\u0399", U"\u1FFA\u0345"},
    {0x1FF3, U"\u03A9\u0399", U"\u1FFC"},
    {0x1FF4, U"\u038F\u0399", U"\u038F\u0345"},
    {0x1FF6, U"\u03A9\u0342", U"\u03A9\u0342"},
    {0x1FF7, U"\u03A9\u0342\u0399", U"\u03A9\u0342\u0345"},
    {0x1FFC, U"\u03A9\u0399", U"\u1FFC"},
    {0xFB00, U"FF", U"Ff"},
    {0xFB01, U"FI", U"Fi"},
    {0xFB02, U"FL", U"Fl"},
    {0xFB03, U"FFI", U"Ffi"},
    {0xFB04, U"FFL", U"Ffl"},
    {0xFB05, U"ST", U"St"},
    {0xFB06, U"ST", U"St"},
    {0xFB13, U"\u0544\u0546", U"\u0544\u0576"},
    {0xFB14, U"\u0544\u0535", U"\u0544\u0565"},
    {0xFB15, U"\u0544\u053B", U"\u0544\u056B"},
    {0xFB16, U"\u054E\u0546", U"\u054E\u0576"},
    {0xFB17, U"\u0544\u053D", U"\u0544\u056D"},
};

const LongCase* long_case(char32_t c) {
  if (c < 0xDF) return nullptr;
  const auto it = std::lower_bound(std::begin(kLongCases), std::end(kLongCases), c,
                                   [](const LongCase& row, char32_t code) { return row.code < code; });
  return it != std::end(kLongCases) && it->code == c ? it : nullptr;
}

char32_t simple(utf8proc_int32_t (*map)(utf8proc_int32_t), char32_t c) {
  return static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(c)));
}

void append_upper(std::string& text, char32_t c) {
  const LongCase* several = long_case(c);
  if (several == nullptr) return append_character(text, simple(utf8proc_toupper, c));
  for (const char32_t each : several->upper) append_character(text, each);
}

void append_title(std::string& text, char32_t c) {
  const LongCase* several = long_case(c);
  if (several == nullptr) return append_character(text, simple(utf8proc_totitle, c));
  for (const char32_t each : several->title) append_character(text, each);
}

bool is_case_ignorable(char32_t c) {
  const utf8proc_category_t kind = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' || c == ':' ||
         c == 0xB7 || c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027;
}

bool is_cased(char32_t c) {
  return is_lower(c) || is_upper(c) || is_titlecase(c);
}

constexpr char32_t kSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;

// Unicode's Final_Sigma: a letter before it, none behind, marks and apostrophes not counted.
bool is_final_sigma(const std::vector<char32_t>& all, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(all[before - 1])) --before;
  if (before == 0 || !is_cased(all[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < all.size() && is_case_ignorable(all[after])) ++after;
  return after == all.size() || !is_cased(all[after]);
}

void append_lower(std::string& text, const std::vector<char32_t>& all, std::size_t at) {
  const char32_t c = all[at];
  if (c == kSigma) return append_character(text, is_final_sigma(all, at) ? kFinalSigma : kSmallSigma);
  append_character(text, c == 0x130 ? U'i' : simple(utf8proc_tolower, c));
  if (c == 0x130) append_character(text, 0x307);
}

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; });
}

}  // namespace

std::string to_lower(std::string_view text) {
  count_copy(text.size());
  std::string lower;
  if (is_ascii(text)) {
    for (const char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    return lower;
  }
  const std::vector<char32_t> all = characters(text);
  for (std::size_t i = 0; i < all.size(); ++i) append_lower(lower, all, i);
  return lower;
}

std::string to_upper(std::string_view text) {
  count_copy(text.size());
  std::string upper;
  for (std::size_t at = 0; at < text.size();) append_upper(upper, next_character(text, at));
  return upper;
}

std::string to_title(std::string_view text) {
  const std::vector<char32_t> all = characters(text);
  std::string title;
  bool inside = false;  // a word
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (inside) {
      append_lower(title, all, i);
    } else {
      append_title(title, all[i]);
    }
    inside = is_cased(all[i]);
  }
  return title;
}

std::string to_capitalized(std::string_view text) {
  const std::vector<char32_t> all = characters(text);
  std::string capitalized;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 0) {
      append_title(capitalized, all[i]);
    } else {
      append_lower(capitalized, all, i);
    }
  }
  return capitalized;
}

std::string swapped_case(std::string_view text) {
  const std::vector<char32_t> all = characters(text);
  std::string swapped;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_upper(all[i])) {
      append_lower(swapped, all, i);
    } else if (is_lower(all[i])) {
      append_upper(swapped, all[i]);
    } else {
      append_character(swapped, all[i]);
    }
  }
  return swapped;
}

// The full case folding of each character: nothing is composed or decomposed.
std::string case_folded(std::string_view text) {
  count_copy(text.size() * 4);
  std::string folded;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    utf8proc_int32_t out[8] = {};
    int boundary = 0;
    const auto made =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), out, 8, UTF8PROC_CASEFOLD, &boundary);
    if (made <= 0) append_character(folded, c);
    for (utf8proc_ssize_t i = 0; i < std::min<utf8proc_ssize_t>(made, 8); ++i)
      append_character(folded, static_cast<char32_t>(out[i]));
  }
  return folded;
}

}  // namespace assay::jinja
