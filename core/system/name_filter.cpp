#include "core/system/name_filter.h"

#include <fmt/format.h>

#include "core/system/die_when_interrupted.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

std::optional<std::regex> compile(const std::string& pattern) {
  if (pattern.empty()) return std::nullopt;
  const DieWhenInterrupted guard;  // (a{1000}){1000} may take for ever, and so may matching (a+)+$
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error&) {
    throw Error::usage(fmt::format("'{}' is not a regular expression", escape_for_terminal(pattern)));
  }
}

}  // namespace

NameFilter::NameFilter(const std::string& include, const std::string& exclude)
    : include_(compile(include)), exclude_(compile(exclude)) {}

bool NameFilter::accepts(std::string_view name) const {
  const DieWhenInterrupted guard;
  const std::string_view examined = name.substr(0, kExaminedBytes);
  if (include_ && !std::regex_search(examined.begin(), examined.end(), *include_)) return false;
  return !(exclude_ && std::regex_search(examined.begin(), examined.end(), *exclude_));
}

}  // namespace assay
