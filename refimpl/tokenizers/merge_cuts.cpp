#include "refimpl/tokenizers/merge_cuts.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace assay {

// Fibonacci hashing, then linear probing.
std::size_t MergeCuts::place(std::uint64_t pair) const {
  const int shift = 64 - std::countr_zero(pairs_.size());
  std::size_t at = (pair * 0x9E3779B97F4A7C15ull) >> shift;
  while (pairs_[at] != 0 && pairs_[at] != pair) at = (at + 1) & (pairs_.size() - 1);
  return at;
}

void MergeCuts::grow() {
  const std::vector<std::uint64_t> before = std::exchange(pairs_, {});
  pairs_.assign(std::max<std::size_t>(64, 2 * before.size()), 0);
  for (const std::uint64_t pair : before) {
    if (pair != 0) pairs_[place(pair)] = pair;
  }
}

void MergeCuts::add(std::string_view piece) {
  std::string_view left;
  unicode::for_each_character(piece, [&](const unicode::Character&, std::string_view right) {
    if (!left.empty()) {
      const std::uint64_t pair = pair_of(left, right);
      if (is_ascii(pair)) {
        ascii_.set(ascii_place(pair));
      } else {
        if (2 * (count_ + 1) > pairs_.size()) grow();
        std::uint64_t& slot = pairs_[place(pair)];
        count_ += slot == 0 ? 1 : 0;
        slot = pair;
      }
    }
    left = right;
  });
}

}  // namespace assay
