#include "core/system/shell_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/text.h"

namespace assay {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string word;
  // Control characters, bytes that are no UTF-8, and what turns a terminal's text around: as numbers. Three
  // octal digits end where they end, whatever digit follows.
  if (escape_for_terminal(text) != text) {
    for (const char c : text) {
      if (c == '\'' || c == '\\')
        word += std::string("\\") + c;
      else if (c >= ' ' && c <= '~')
        word += c;
      else
        word += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
    return "$'" + word + "'";
  }
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + word + "'";
}

std::string shell_line(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace assay
