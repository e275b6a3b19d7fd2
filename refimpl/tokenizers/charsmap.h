// SentencePiece's precompiled_charsmap: which strings of a text become which others before it is cut.
//
//   u32 bytes of the trie | the trie, a darts-clone double array | replacements, each ended by a NUL
//
// (sentencepiece/src/normalizer.cc; a unit's bits: darts-clone's DoubleArrayUnit.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

class Charsmap {
 public:
  Charsmap() = default;  // changes nothing
  // Error::input for a blob that cannot be one.
  explicit Charsmap(std::string_view blob);

  bool empty() const { return units_.empty(); }

  // Is a text that begins with this ASCII character, and ends behind it or goes on with ASCII other than NUL, sure to
  // begin with nothing to be replaced?
  bool leaves_alone(unsigned char ascii) const;

  struct Replacement {
    std::size_t length = 0;  // bytes of the text that are replaced
    std::string_view with;
  };
  std::optional<Replacement> longest(std::string_view text) const;   // as SentencePiece asks
  std::optional<Replacement> shortest(std::string_view text) const;  // as the tokenizers crate asks

  // What the tokenizers crate's "Precompiled" makes of a text: graphemes of up to 5 bytes are looked up
  // whole, then character by character; the shortest entry stands for the whole of what was looked up.
  std::string normalize_graphemes(std::string_view text) const;

 private:
  template <class Take>
  void walk(std::string_view text, Take take) const;  // take(length, value) returns false to stop
  std::string_view replacement(std::uint32_t offset) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

// Base64 with padding, as tokenizer.json carries the blob and rank files their bytes. Nullopt: it is not.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace assay
