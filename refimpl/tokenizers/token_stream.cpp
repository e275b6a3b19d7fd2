#include "refimpl/tokenizers/token_stream.h"

#include "refimpl/tokenizers/unicode.h"

namespace assay {

std::string TokenStream::take(std::string_view bytes, bool last) {
  held_ += bytes;
  std::size_t sure = held_.size();
  // A character has at most four bytes, so at most three of it can be waiting.
  for (std::size_t tail = std::min<std::size_t>(3, held_.size()); !last && tail > 0; --tail) {
    const std::string_view end = std::string_view(held_).substr(held_.size() - tail);
    if (unicode::incomplete_prefix(end) == tail) {
      sure = held_.size() - tail;
      break;
    }
  }
  std::string text = unicode::with_replacements(std::string_view(held_).substr(0, sure));
  held_.erase(0, sure);
  return text;
}

}  // namespace assay
