// The tokenizer of a checkpoint's folder as GGUF metadata, as llama.cpp's converter writes it:
// tokenizer.model (SentencePiece), tokenizer.json (byte-level BPE, or BPE with byte fallback) or tokenizer.jsonl
// (PLaMo), the special tokens of tokenizer_config.json, and the chat template.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/gguf.h"
#include "core/formats/json.h"
#include "core/model/gguf_rules.h"

namespace assay {

// tokenizer.ggml.pre tells llama.cpp by which regular expressions text is cut before BPE. The converter finds
// its name by a hash of what the tokenizer makes of a test string; here it is found by the expressions that
// tokenizer.json itself holds. Several names stand for one rule; that which the converter has for models of
// `family` is given, or else the oldest. Empty: unknown.
std::string pre_tokenizer_name(const ParsedJson& tokenizer_json, std::string_view family = {});

// The other way: `pre_tokenizer` of a tokenizer.json; null for a name that is not known.
ParsedJson pre_tokenizer_json(std::string_view name);
// And its `normalizer`: Qwen's tokenizers bring text to NFC first, which llama.cpp leaves out; else null.
ParsedJson normalizer_json(std::string_view name);

enum class TokenKind : std::int32_t { normal = 1, unknown, control, user_defined, unused, byte };

// `pre`: the name to write instead of the one found; "none": no tokenizer at all. Throws Error::refused where
// there is no tokenizer that GGUF can hold, or its pre-tokenizer is not recognized; Error::input for a
// malformed one.
std::vector<gguf::KeyValue> gguf_tokenizer(const std::filesystem::path& folder, const ModelConfig& config,
                                           const GgufFamily& family, std::string_view pre);

// --- parts of it -------------------------------------------------------------------------------------------

inline constexpr JsonLimits kTokenizerFileLimits = {
    .max_bytes = 256ull << 20, .max_depth = 64, .duplicate_keys = true};

// A part that a token plays ("eot") and the text by which a family's converter finds it.
struct NamedToken {
  std::string_view part, text;
};
struct SpecialTokenRules {
  std::uint64_t tokens = 0;                // how many there are; 0: not checked
  std::span<const NamedToken> named = {};  // where no file says which token plays the part
  bool padding = true;                     // padding is looked for
  bool template_of_file = false;           // chat_template.jinja comes before tokenizer_config.json
};

// Which tokens are special, and which are added around a text.
std::vector<gguf::KeyValue> special_token_metadata(const std::filesystem::path& folder,
                                                   const SpecialTokenRules& rules);

// The rules of a kind of tokenizer, and the keys that its converter sets of its own: behind the tokens, and behind those
// of special_token_metadata().
struct TokenizerFolder {
  const std::filesystem::path& path;
  const ParsedJson& settings;  // tokenizer_config.json
  const ParsedJson& config;    // config.json, with text_config within it
  std::uint64_t tokens;
};
SpecialTokenRules special_token_rules(GgufRules::Tokenizer kind, const TokenizerFolder& folder);
void add_keys_between(GgufRules::Tokenizer kind, const TokenizerFolder& folder,
                      std::vector<gguf::KeyValue>& keys);
void add_keys_after(GgufRules::Tokenizer kind, const TokenizerFolder& folder,
                    std::vector<gguf::KeyValue>& keys);

// A token that the converter takes for a control token though its file does not say so.
bool looks_special(std::string_view token);

}  // namespace assay
