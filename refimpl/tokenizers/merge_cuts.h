// Where a text may be cut before its symbols are merged.
//
// Merging makes pieces of the vocabulary only, so two characters between which no piece ever lies side by side are never
// swallowed by one symbol: what is left of them and what is right of them merge each as if the other were not there. A
// vocabulary that marks words ("▁the") has no piece with a letter before a mark, and a book falls apart into its words,
// which repeat.
//
//   MergeCuts cuts;  for each piece that a merge makes: cuts.add(piece);
//   cuts.split(text, frozen, [&](std::string_view part) { … });
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

#include "refimpl/tokenizers/pair_table.h"
#include "refimpl/tokenizers/unicode.h"

namespace assay {

class MergeCuts {
 public:
  void add(std::string_view piece);

  // Calls take(part) for parts that give `text` together. `uncut(character)` says of one's bytes that nothing is to be cut
  // beside it.
  template <class Uncut, class Take>
  void split(std::string_view text, Uncut uncut, Take take) const {
    std::size_t begin = 0;
    std::string_view left;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view right = text.substr(at, unicode::character_at(text, at).length);
      if (at > begin && !meet(left, right) && !uncut(left) && !uncut(right)) {
        take(text.substr(begin, at - begin));
        begin = at;
      }
      left = right;
      at += right.size();
    }
    if (begin < text.size()) take(text.substr(begin));
  }

 private:
  // Does a piece hold these two characters side by side? Most are of one byte each.
  bool meet(std::string_view left, std::string_view right) const {
    const auto l = static_cast<unsigned char>(left[0]), r = static_cast<unsigned char>(right[0]);
    if ((l | r) < 0x80) return ascii_[std::size_t{l} << 7 | r];
    return pairs_.find(pair_of(left, right)) != nullptr;
  }

  static std::uint32_t packed(std::string_view character) {
    std::uint32_t bytes = 0;
    for (const char c : character) bytes = bytes << 8 | static_cast<unsigned char>(c);
    return bytes;
  }
  static std::uint64_t pair_of(std::string_view left, std::string_view right) {
    return pair_key(packed(left), packed(right));
  }
  static bool is_ascii(std::uint64_t pair) { return (pair & ~0x0000007F'0000007Full) == 0; }
  static std::size_t ascii_place(std::uint64_t pair) { return (pair >> 25 & 0x3F80) | (pair & 0x7F); }

  struct Nothing {};
  std::bitset<128 * 128> ascii_;
  PairTable<Nothing> pairs_;
};

}  // namespace assay
