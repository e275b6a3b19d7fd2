// What a text is searched for: a literal, or a regular expression.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "refimpl/tokenizers/regex.h"

namespace assay {

class TextPattern {
 public:
  static TextPattern literal(std::string_view text) {
    if (text.empty()) return regex("", RegexDialect::oniguruma);  // matches between any two characters
    return TextPattern(std::string(text), std::nullopt);
  }
  static TextPattern regex(std::string_view pattern, RegexDialect dialect) {
    return TextPattern("", Regex(pattern, dialect));
  }

  // Calls take(begin, end) for each match, as Regex does. A literal is searched for among bytes: no character of valid
  // UTF-8 begins inside another.
  template <class Take>
  void for_each_match(std::string_view text, Take take) const {
    if (regex_) return regex_->for_each_match(text, take);
    for (std::size_t at = text.find(literal_); at != text.npos;
         at = text.find(literal_, at + literal_.size()))
      take(at, at + literal_.size());
  }

 private:
  TextPattern(std::string literal, std::optional<Regex> regex)
      : literal_(std::move(literal)), regex_(std::move(regex)) {}

  std::string literal_;
  std::optional<Regex> regex_;
};

}  // namespace assay
