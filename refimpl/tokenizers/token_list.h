// Ids as the command line gives them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

// "1,2,3". Throws Error::usage on anything else, which names the option.
std::vector<TokenId> parse_tokens(const std::string& list, std::string_view option = "--tokens");

}  // namespace assay
