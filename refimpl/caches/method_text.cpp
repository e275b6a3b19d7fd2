#include "refimpl/caches/method_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {

MethodText::MethodText(std::string_view text) : text_(text) {
  const std::size_t colon = text.find(':');
  name_ = std::string(text.substr(0, colon));
  std::string_view rest = colon == text.npos ? std::string_view() : text.substr(colon + 1);
  if (colon != text.npos && rest.empty())
    throw Error::usage(fmt::format("\"{}\" has no options behind its colon", text));
  while (!rest.empty()) {
    const std::string_view option = rest.substr(0, rest.find(','));
    const std::size_t equals = option.find('=');
    if (equals == 0 || equals == option.npos || equals + 1 == option.size())
      throw Error::usage(fmt::format("\"{}\" of \"{}\" is no OPTION=VALUE", option, text));
    if (!options_.emplace(option.substr(0, equals), option.substr(equals + 1)).second)
      throw Error::usage(fmt::format("\"{}\" says {} twice", text, option.substr(0, equals)));
    if (option.size() + 1 == rest.size()) throw Error::usage(fmt::format("\"{}\" ends with a comma", text));
    rest.remove_prefix(std::min(rest.size(), option.size() + 1));
  }
}

std::size_t MethodText::number(const std::string& option, std::size_t otherwise, std::size_t least) {
  const auto found = options_.extract(option);
  if (!found) return otherwise;
  if (found.mapped() == "all") return kEverything;
  const auto value = parse_u64(found.mapped());
  if (!value || *value < least || *value > (std::uint64_t{1} << 40))
    throw Error::usage(fmt::format("{} of \"{}\": \"{}\" is neither \"all\" nor a whole number from {} up",
                                   option, text_, found.mapped(), least));
  return *value;
}

std::string MethodText::word(const std::string& option, const std::vector<std::string>& words) {
  const auto found = options_.extract(option);
  if (!found) return words.front();
  if (std::find(words.begin(), words.end(), found.mapped()) == words.end())
    throw Error::usage(fmt::format("{} of \"{}\": \"{}\" is none of {}", option, text_, found.mapped(),
                                   fmt::join(words, ", ")));
  return found.mapped();
}

void MethodText::require_all_used() const {
  if (options_.empty()) return;
  throw Error::usage(fmt::format("{} has no option \"{}\"", name_, options_.begin()->first));
}

}  // namespace assay
