// Regular expressions as tokenizers write them, matched by PCRE2.
//
// tokenizer.json speaks Oniguruma, tiktoken the dialect of Rust's regex crates. Both differ from PCRE2 in
// small, costly ways (what \s and \w hold, what `{1,3}+` and `$` mean, `[a&&[^b]]`): translate_regex()
// evens them out.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace assay {

enum class RegexDialect { oniguruma, rust };

// `pattern` in the words of PCRE2 (with UTF and UCP on).
std::string translate_regex(std::string_view pattern, RegexDialect dialect);

class Regex {
 public:
  // Throws Error::input for a pattern that cannot be compiled.
  Regex(std::string_view pattern, RegexDialect dialect);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // A literal as a pattern.
  static std::string escaped(std::string_view literal);

  // Non-overlapping matches from left to right; empty ones too, but for those right behind another match.
  // Stray bytes match nothing and are the end of the text to what lies before them. Throws Error::input when
  // a match takes beyond all measure.
  void for_each_match(std::string_view text,
                      const std::function<void(std::size_t begin, std::size_t end)>& take) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace assay
