// Words already seen in a text, and their tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "refimpl/tokenizers/string_table.h"
#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

// Natural text repeats its words; long ones hardly recur.
class WordCache {
 public:
  static constexpr std::size_t kLongest = 128, kMost = 1 << 16;

  bool recall(std::string_view word, std::vector<TokenId>& out) const {
    if (word.size() > kLongest) return false;
    const Place* place = places_.find(word);
    if (place == nullptr) return false;
    if (place->count == 1) return out.push_back(place->only_or_begin), true;
    const auto begin = tokens_.begin() + place->only_or_begin;
    out.insert(out.end(), begin, begin + place->count);
    return true;
  }
  void remember(std::string_view word, const TokenId* first, std::size_t count) {
    if (word.size() > kLongest || places_.size() >= kMost) return;
    if (count == 1) return places_.add(word, {1, *first});
    places_.add(word, {static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(tokens_.size())});
    tokens_.insert(tokens_.end(), first, first + count);
  }

 private:
  struct Place {
    std::uint32_t count = 0, only_or_begin = 0;  // the one token, or where in tokens_ they begin
  };
  StringTable<Place> places_;
  std::vector<TokenId> tokens_;
};

}  // namespace assay
