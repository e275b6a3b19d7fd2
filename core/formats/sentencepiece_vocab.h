// The vocabulary of a SentencePiece model file: a protocol buffer (sentencepiece_model.proto) of which field
// 1 repeats { 1: piece, 2: score, 3: type }. Of the rest only add_dummy_prefix is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct SentencePiece {
  enum class Type : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };
  std::string text;
  float score = 0;
  Type type = Type::normal;
};

struct SentencePieceIds {
  std::uint64_t unknown = 0, begin = 1, end = 2;
};
// A BPE model with byte fallback that has these pieces and normalizes nothing; `prefix`: a space is put
// before a text.
std::string serialize_sentencepiece_bpe(const std::vector<SentencePiece>& pieces, const SentencePieceIds& ids,
                                        bool prefix);

// Throws Error::input on what is no such file.
std::vector<SentencePiece> parse_sentencepiece_vocab(std::string_view bytes,
                                                     const std::filesystem::path& source);

// Whether a space is put before a text (normalizer_spec.add_dummy_prefix; true where the file does not say).
bool sentencepiece_adds_prefix(std::string_view bytes, const std::filesystem::path& source);

}  // namespace assay
