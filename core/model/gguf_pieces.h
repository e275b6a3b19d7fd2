// Vocabularies of pieces with scores, as GGUF's "llama" and "plamo2" tokenizers keep them, out of a checkpoint's
// tokenizer.model (SentencePiece) or tokenizer.jsonl (PLaMo). Source: llama.cpp's conversion/*.py.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/formats/json.h"

namespace assay {

struct GgufVocabulary {
  std::vector<std::string> texts;
  std::vector<float> scores;  // empty: GGUF keeps none
  std::vector<std::int32_t> kinds;
};

constexpr float kNoScore = -1000.0F;  // of tokens that were added

// "[PAD17]", of an id that no token has.
std::string padding_token(std::uint64_t id);

// Control, or user-defined and then with spaces for SentencePiece's "▁".
std::int32_t classify_added_token(std::string& text, bool special);

// added_tokens_decoder of tokenizer_config.json: {"32000": {"content": "<|im_end|>", "special": true}}
using TakeAddedToken = std::function<void(std::uint64_t id, std::string text, bool special)>;
void for_each_decoder_entry(const ParsedJson& settings, const TakeAddedToken& take);
// `added_tokens` of tokenizer.json.
void for_each_added_token(const ParsedJson& tokenizer_json, const TakeAddedToken& take);

// How a family's converter reads a SentencePiece model, beside the common way.
enum class PiecesOf : std::uint8_t {
  any,
  phi3,       // added tokens as they are named, also those of tokenizer.json
  internlm2,  // the same, and "[UNUSED…" is unused
};

// `settings`: tokenizer_config.json. Throws Error::input on a malformed tokenizer.model.
GgufVocabulary read_sentencepiece(const std::filesystem::path& folder, const ParsedJson& settings,
                                  std::uint64_t size, PiecesOf of);

// A line a token: ["ab", -1.25, "NORMAL", …]. Throws Error::input on a malformed file.
GgufVocabulary read_plamo_pieces(const std::filesystem::path& folder, std::uint64_t size);

}  // namespace assay
