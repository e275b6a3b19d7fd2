#include "refimpl/tokenizers/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"

namespace assay {

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  const auto decoder = this->decoder(skip_special);
  std::string text;
  for (const TokenId id : ids) text += decoder->push(id);
  return text + decoder->finish();
}

const std::string& Tokenizer::piece(TokenId id) const {
  return vocabulary_.at(id);
}

bool Tokenizer::ends_generation(TokenId id) const {
  const auto& ends = special_.end_of_generation;
  return std::find(ends.begin(), ends.end(), id) != ends.end();
}

void Tokenizer::check_length(std::string_view text) const {
  if (text.size() > kMostTextBytes) {
    throw Error::input(
        fmt::format("text of {} bytes; at most {} are tokenized at once", text.size(), kMostTextBytes))
        .remedy("cut it into pieces");
  }
}

const std::string& Tokenizer::chat_template() const {
  static const std::string kNone;
  for (const NamedTemplate& each : chat_templates_) {
    if (each.name == "default") return each.text;
  }
  return kNone;
}

}  // namespace assay
