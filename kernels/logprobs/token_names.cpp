#include "kernels/logprobs/token_names.h"

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
        if (!candidate.id) candidate.id = names.id_of(candidate.text);
    }
  }
  return named;
}

}  // namespace assay::logprobs
