// A text as windows of tokens (refimpl/engine/text_windows.h), whole or by paragraphs.
#pragma once

#include <string>

#include "refimpl/engine/text_windows.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

// Throws Error::input where the text is too short for the rule.
void for_each_window(const Tokenizer& tokenizer, const std::string& text, const WindowRule& rule,
                     const WindowListener& listener);

}  // namespace assay
