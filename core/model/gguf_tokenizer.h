// The tokenizer of a checkpoint's folder as GGUF metadata, as llama.cpp's converter writes it:
// tokenizer.model (SentencePiece) or tokenizer.json (byte-level BPE, or BPE with byte fallback), the special
// tokens of tokenizer_config.json, and the chat template.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/gguf.h"
#include "core/formats/json.h"
#include "core/model/gguf_family.h"

namespace assay {

// tokenizer.ggml.pre tells llama.cpp by which regular expressions text is cut before BPE. The converter finds
// its name by a hash of what the tokenizer makes of a test string; here it is found by the expressions that
// tokenizer.json itself holds. Several names stand for one rule; the oldest is given. Empty: unknown.
std::string pre_tokenizer_name(const ParsedJson& tokenizer_json);

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

// Which tokens are special, and which are added around a text. `tokens`: how many there are; 0: not checked.
std::vector<gguf::KeyValue> special_token_metadata(const std::filesystem::path& folder, std::uint64_t tokens);

// A token that the converter takes for a control token though its file does not say so.
bool looks_special(std::string_view token);

}  // namespace assay
