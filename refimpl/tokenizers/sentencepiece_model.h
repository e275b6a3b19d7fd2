// A SentencePiece model file: a protobuf (sentencepiece/src/sentencepiece_model.proto), read without
// protobuf.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

struct SentencePieceModel {
  enum class Type { unigram = 1, bpe = 2, word = 3, character = 4 };

  Vocabulary vocabulary;       // kinds as SentencePiece numbers them
  std::vector<double> scores;  // by id
  Type type = Type::unigram;
  bool byte_fallback = false, space_as_suffix = false;
  SpecialTokens special;
  std::string unk_surface = " \xE2\x81\x87 ";  // what the unknown token decodes to

  // normalizer_spec
  std::string charsmap;
  bool add_dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true;
};

// Error::input for bytes that are no such file; memory stays in proportion to `bytes`.
SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::filesystem::path& source);

}  // namespace assay
