// Characters and strings as Python's str has them, over UTF-8.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::jinja {

// The character at byte `at`, which moves behind it. The text is whole: UTF-8, or half surrogates in three bytes.
char32_t next_character(std::string_view text, std::size_t& at);
void append_character(std::string& text, char32_t c);
std::size_t count_characters(std::string_view text);
// The byte at which character `index` begins, or the text's size.
std::size_t byte_of_character(std::string_view text, std::size_t index);
std::vector<char32_t> characters(std::string_view text);
std::string from_characters(const std::vector<char32_t>& characters);
bool has_half_surrogate(std::string_view text);

bool is_space(char32_t c);       // str.isspace, and \s
bool is_line_break(char32_t c);  // where str.splitlines cuts
bool is_printable(char32_t c);   // repr leaves it alone
bool is_alphabetic(char32_t c);  // L*
bool is_decimal(char32_t c);     // Nd
bool is_digit(char32_t c);       // Nd, and superscripts and the like
bool is_numeric(char32_t c);     // N*, and ideographs that are numbers
bool is_word(char32_t c);        // \w
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_titlecase(char32_t c);

std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
std::string to_title(std::string_view text);  // str.title
std::string to_capitalized(std::string_view text);
std::string swapped_case(std::string_view text);
std::string case_folded(std::string_view text);

enum class Side { left, right, both };
// Without `characters`: white space.
std::string_view stripped(std::string_view text, Side side, std::optional<std::string_view> characters = {});
std::vector<std::string_view> split_words(std::string_view text, std::int64_t most);  // split()
std::vector<std::string_view> split_words_from_right(std::string_view text, std::int64_t most);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
std::string escaped_for_html(std::string_view text);
std::string replaced(std::string_view text, std::string_view old, std::string_view with,
                     std::int64_t most = -1);

}  // namespace assay::jinja
