// What lies beside a vocabulary and says how it is meant: tokenizer_config.json, generation_config.json,
// config.json, added_tokens.json, chat_template.jinja, chat_template.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/json.h"
#include "refimpl/tokenizers/added_tokens.h"
#include "refimpl/tokenizers/tokenizer.h"
#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

struct TokenizerNeighbours {
  bool has_config = false;                  // tokenizer_config.json is there
  std::string tokenizer_class, model_type;  // "Qwen2Tokenizer", "qwen3"; may be empty
  std::string bos, eos, unk, pad;           // pieces; may be empty
  std::optional<bool> add_bos, add_eos;
  bool add_prefix_space = false;
  std::vector<AddedToken> added;         // added_tokens_decoder, added_tokens.json
  std::vector<TokenId> generation_ends;  // eos_token_id of generation_config.json
  std::vector<NamedTemplate> chat_templates;
  std::vector<std::pair<std::string, std::string>> template_tokens;  // "bos_token", "<s>" …
};

// Files that are absent are no fault; those that cannot be read are Error::input.
TokenizerNeighbours read_neighbours(const std::filesystem::path& folder);

// BOS, EOS … as the neighbours name them, looked up in `vocabulary`.
SpecialTokens special_tokens(const TokenizerNeighbours& neighbours, const Vocabulary& vocabulary);
// Puts the neighbours' added tokens into `vocabulary`, special ones as control pieces, and returns those that
// `have` does not have.
std::vector<AddedToken> merge_added(const TokenizerNeighbours& neighbours, std::vector<AddedToken> have,
                                    Vocabulary& vocabulary);

// One {"id", "content", "special", …} of tokenizer.json or, the id apart, of added_tokens_decoder.
AddedToken read_added_token(const ParsedJson& object, TokenId id, const std::filesystem::path& source);

}  // namespace assay
