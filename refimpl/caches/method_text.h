// "h2o:budget=64,recent=16" taken apart: a name and its options, each asked for once.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

inline constexpr std::size_t kEverything = std::numeric_limits<std::size_t>::max();

class MethodText {
 public:
  explicit MethodText(std::string_view text);  // throws Error::usage
  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }
  // A whole number of at least `least`, or "all" (kEverything).
  std::size_t number(const std::string& option, std::size_t otherwise, std::size_t least = 0);
  // One of `words`; the first is what holds where nothing is said.
  std::string word(const std::string& option, const std::vector<std::string>& words);
  // Throws Error::usage where an option was not asked for by anybody.
  void require_all_used() const;

 private:
  std::string text_, name_;
  std::map<std::string, std::string> options_;
};

}  // namespace assay
