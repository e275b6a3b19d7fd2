// The text that two computations are compared on: -p, --tokens, --file, or none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "refimpl/models/model.h"

namespace assay {

struct TextSource {
  std::optional<std::string> prompt, tokens;
  std::string file;
};
struct GivenText {
  std::vector<TokenId> tokens;
  std::optional<TokenId> bos;  // what it begins with, where the tokenizer put that there
  std::string about;
};
// Without any: `own` ids from all over the vocabulary. Throws Error::usage where there are several, or no token in it.
GivenText given_text(const TextSource& source, const Weights& weights, const LanguageModel& model,
                     std::size_t own = 24);

}  // namespace assay
