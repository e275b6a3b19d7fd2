// A text of any length as windows that a model can read, each with the tokens in it that count.
//
//   whole         one window after the other, each begun as the text begins; every token counts
//   transformers  a window begins every `stride` tokens; those count that no window before had
//                 (huggingface.co/docs/transformers/perplexity)
//   llama.cpp     one window after the other, its first token replaced by BOS where the text begins with one;
//                 the second half counts, and the rest of the text that fills no window is left out
//                 (tools/perplexity/perplexity.cpp)
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "refimpl/ops/interface.h"

namespace assay {

struct TextWindow {
  std::vector<TokenId> tokens;
  std::size_t first = 1;  // the first token that counts, predicted from those before
};

struct WindowRule {
  enum class Kind { whole, transformers, llama_cpp };
  Kind kind = Kind::whole;
  std::size_t context = 0;  // of the windows
  std::size_t stride = 0;   // of transformers
  bool by_paragraph =
      false;  // each paragraph (blank lines between) alone as BOS, text, EOS, cut where it is long
};

using WindowListener = std::function<bool(const TextWindow& window)>;  // false: no more of them
// `bos`: what the text begins with, where that is a token of the tokenizer's own. Paragraphs are not seen
// here. Throws Error::input where the text is too short for the rule. False: the listener wanted no more.
bool for_each_window(const std::vector<TokenId>& tokens, std::optional<TokenId> bos, const WindowRule& rule,
                     const WindowListener& listener);

}  // namespace assay
