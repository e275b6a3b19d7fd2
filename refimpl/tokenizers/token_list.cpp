#include "refimpl/tokenizers/token_list.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {

std::vector<TokenId> parse_tokens(const std::string& list, std::string_view option) {
  std::vector<TokenId> tokens;
  std::string_view rest = list;
  while (true) {
    const auto comma = rest.find(',');
    const std::string_view part = trim(rest.substr(0, comma));
    const auto id = parse_u64(part);
    if (!id || *id > 0xFFFFFFFF)
      throw Error::usage(
          fmt::format("{} takes ids with commas between, not \"{}\"", option, escape_for_terminal(part)));
    tokens.push_back(static_cast<TokenId>(*id));
    if (comma == std::string_view::npos) return tokens;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace assay
