// Prompts as chat models want them: as their own template writes them, or not at all (chat_style.h).
#pragma once

#include <string>
#include <vector>

#include "refimpl/tokenizers/chat_style.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// Throws Error::input where the model brings no template, or one that is not known to the letter.
const ChatStyle& recognize_chat_style(const Tokenizer& tokenizer);

// The prompt up to where the assistant is to speak: after perhaps a system's message, user and assistant take
// turns, and a user's is the last. It holds BOS as text where the template writes one: encode it with
// add_special = false. Throws Error::input for any other order, and for texts that the template would treat
// in ways of its own.
std::string render_chat(const ChatStyle& style, const std::vector<ChatMessage>& messages,
                        const Tokenizer& tokenizer);

}  // namespace assay
