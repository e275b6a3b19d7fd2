// Words already seen in a text, and their tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "refimpl/tokenizers/vocabulary.h"

namespace assay {

// Natural text repeats its words; long ones hardly recur.
class WordCache {
 public:
  static constexpr std::size_t kLongest = 128, kMost = 1 << 16;

  bool recall(std::string_view word, std::vector<TokenId>& out) const {
    if (word.size() > kLongest) return false;
    const auto it = places_.find(word);
    if (it == places_.end()) return false;
    const auto [begin, count] = it->second;
    for (std::uint32_t i = 0; i < count; ++i) out.push_back(tokens_[begin + i]);
    return true;
  }
  void remember(std::string_view word, const TokenId* first, std::size_t count) {
    if (word.size() > kLongest || places_.size() >= kMost) return;
    places_.emplace(word,
                    Place{static_cast<std::uint32_t>(tokens_.size()), static_cast<std::uint32_t>(count)});
    tokens_.insert(tokens_.end(), first, first + count);
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Place {
    std::uint32_t begin, count;
  };
  std::unordered_map<std::string, Place, Hash, std::equal_to<>> places_;
  std::vector<TokenId> tokens_;
};

}  // namespace assay
