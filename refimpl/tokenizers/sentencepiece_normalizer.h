// The text as SentencePiece's models see it: characters mapped, spaces tidied and made visible.
// (sentencepiece/src/normalizer.cc)
#pragma once

#include <bitset>
#include <string>
#include <string_view>

#include "refimpl/tokenizers/byte_trie.h"
#include "refimpl/tokenizers/charsmap.h"
#include "refimpl/tokenizers/sentencepiece_model.h"

namespace assay {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

class SentencePieceNormalizer {
 public:
  explicit SentencePieceNormalizer(const SentencePieceModel& model);
  // with_prefix: begins with the space that add_dummy_prefix asks for.
  std::string normalize(std::string_view text, bool with_prefix) const;
  // The user-defined piece that `text` begins with; its length, or 0.
  std::size_t user_defined_prefix(std::string_view text) const;

 private:
  struct Step {
    std::size_t length;     // of the text, consumed
    std::string_view with;  // what it becomes
  };
  Step step(std::string_view text) const;
  // Bytes at the beginning that are ASCII, no spaces, and stay as they are. The last before something else may be part of a
  // character, "e" of "e\u0301".
  std::size_t plain_prefix(std::string_view text) const;

  Charsmap charsmap_;
  ByteTrie user_defined_;
  std::bitset<128> plain_;  // ASCII, but for spaces, that nothing replaces before more ASCII
  bool add_dummy_prefix_, remove_extra_, escape_, suffix_, keep_bytes_;
};

}  // namespace assay
