#include "refimpl/grammar/vocabulary_trie.h"

#include <algorithm>
#include <numeric>

namespace assay::grammar {

VocabularyTrie::VocabularyTrie(const std::vector<std::string>& texts) {
  for (TokenId id = 0; id < texts.size(); ++id)
    if (!texts[id].empty()) tokens_.push_back(id);
  std::sort(tokens_.begin(), tokens_.end(), [&](TokenId a, TokenId b) {
    const int order = texts[a].compare(texts[b]);
    return order != 0 ? order < 0 : a < b;
  });
  std::vector<std::uint32_t> path;  // the branches that lead to the newest token
  const auto leave = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      branches_[path.back()].after = static_cast<std::uint32_t>(branches_.size());
  };
  std::string_view before;
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view text = texts[tokens_[i]];
    const auto shared = static_cast<std::size_t>(
        std::mismatch(before.begin(), before.end(), text.begin(), text.end()).first - before.begin());
    leave(shared);
    for (std::size_t d = shared; d < text.size(); ++d) {
      path.push_back(static_cast<std::uint32_t>(branches_.size()));
      branches_.push_back({static_cast<std::uint8_t>(text[d]), static_cast<std::uint32_t>(d + 1), 0, i, i});
    }
    ++branches_[path.back()].tokens_end;
    deepest_ = std::max(deepest_, text.size());
    before = text;
  }
  leave(0);
}

}  // namespace assay::grammar
