// --include and --exclude REGEX, for commands that work on names: files, tensors, modules.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>

namespace assay {

class NameFilter {
 public:
  // ECMAScript syntax, searched anywhere in the name; an empty pattern asks nothing. Throws Error::usage.
  NameFilter(const std::string& include, const std::string& exclude);

  // Of a name longer than kExaminedBytes only the beginning is looked at: the library's matcher recurses once
  // a character, and names come from strangers.
  bool accepts(std::string_view name) const;
  bool accepts_all() const { return !include_ && !exclude_; }

  static constexpr std::size_t kExaminedBytes = 2000;

 private:
  std::optional<std::regex> include_, exclude_;
};

}  // namespace assay
