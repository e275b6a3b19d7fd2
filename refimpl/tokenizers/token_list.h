// Ids as the command line gives them.
#pragma once

#include <string>
#include <vector>

#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

// "1,2,3". Throws Error::usage on anything else.
std::vector<TokenId> parse_tokens(const std::string& list);

}  // namespace assay
