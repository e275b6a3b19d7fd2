#include "refimpl/tokenizers/merge_cuts.h"

namespace assay {

void MergeCuts::add(std::string_view piece) {
  std::string_view left;
  unicode::for_each_character(piece, [&](const unicode::Character&, std::string_view right) {
    if (!left.empty()) {
      const std::uint64_t pair = pair_of(left, right);
      if (is_ascii(pair))
        ascii_.set(ascii_place(pair));
      else
        pairs_.set(pair);
    }
    left = right;
  });
}

}  // namespace assay
