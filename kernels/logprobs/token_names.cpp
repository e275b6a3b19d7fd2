#include "kernels/logprobs/token_names.h"

#include <algorithm>
#include <array>

#include "refimpl/tokenizers/token_text.h"

namespace assay::logprobs {

TokenNames::TokenNames(const Tokenizer& tokenizer) {
  const TextBehindOthers behind(tokenizer);
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::array<TokenId, 1> alone = {id};
    for (const std::string& name : {tokenizer.decode(alone), behind(id), tokenizer.piece(id)}) {
      const auto [at, is_new] = ids_.try_emplace(name, id);
      if (!is_new && at->second != id) at->second.reset();
    }
  }
}

std::optional<TokenId> TokenNames::id_of(const std::string& name) const {
  const auto at = ids_.find(name);
  return at == ids_.end() ? std::nullopt : at->second;
}

SavedResponses with_ids(const SavedResponses& saved, const std::vector<EntireText>& entire,
                        const TokenNames& names) {
  SavedResponses named = saved;
  for (std::size_t t = 0; t < named.texts.size(); ++t) {
    if (!entire[t].fault.empty()) continue;
    std::vector<SavedToken>& tokens = named.texts[t].tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (!tokens[i].id) tokens[i].id = entire[t].ids[entire[t].before + i];
      for (SavedCandidate& candidate : tokens[i].top)
        if (!candidate.id && !may_be_several(candidate.id, candidate.text))
          candidate.id = names.id_of(candidate.text);
    }
  }
  return named;
}

namespace {

// The last byte belongs to a character of UTF-8 that is longer than what there is of it.
bool ends_within_character(std::string_view bytes) {
  constexpr std::size_t kMostBytes = 4;
  for (std::size_t back = 1; back <= std::min(kMostBytes - 1, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;  // not its first
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back;
  }
  return false;
}

}  // namespace

std::size_t not_within_characters(const SavedResponses& saved, const Tokenizer& tokenizer) {
  std::size_t count = 0;
  for (const SavedText& text : saved.texts) {
    const auto decoder = tokenizer.decoder(false);
    std::string bytes;
    for (const SavedToken& token : text.tokens) {
      if (!token.id || *token.id >= tokenizer.vocab_size()) continue;
      const std::string more = decoder->push(*token.id);  // nothing of bytes that it keeps for the next token
      bytes += more;
      count += token.within_character && !more.empty() && !ends_within_character(bytes) ? 1 : 0;
    }
  }
  return count;
}

}  // namespace assay::logprobs
