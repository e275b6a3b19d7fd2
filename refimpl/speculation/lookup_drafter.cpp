#include "refimpl/speculation/lookup_drafter.h"

#include <algorithm>

namespace assay {
namespace {

constexpr std::size_t kLongestMatch = 3;

class LookupDrafter : public Drafter {
 public:
  GuessTree guess(const DraftRequest& request) override {
    GuessTree tree;
    for (const TokenId token : looked_up(request.text, request.shape.size()))
      tree.guesses.push_back({.token = token, .parent = tree.size()});
    return tree;
  }
};

}  // namespace

std::vector<TokenId> looked_up(std::span<const TokenId> text, std::size_t most) {
  for (std::size_t match = std::min(kLongestMatch, text.size()); most > 0 && match > 0; --match) {
    const auto newest = text.last(match);
    for (std::size_t end = text.size() - 1; end >= match; --end) {
      if (!std::equal(newest.begin(), newest.end(), text.begin() + static_cast<std::ptrdiff_t>(end - match)))
        continue;
      const auto behind = text.subspan(end, std::min(most, text.size() - end));
      return {behind.begin(), behind.end()};
    }
  }
  return {};
}

std::unique_ptr<Drafter> LookupDrafts::start() const {
  return std::make_unique<LookupDrafter>();
}

}  // namespace assay
