// Prompts as chat models want them.
//
// Models bring a Jinja template; Debian has no Jinja for C++. So the formats of the families are written down
// here, and recognized by the strings that the model's own template, or else its vocabulary, holds. A
// template that is none of these is an Error: give the prompt as it has to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

enum class ChatFormat {
  chatml,       // <|im_start|>role: Qwen 3, Yi, and many others
  qwen25,       // ChatML with a system message of its own where there is none
  llama2,       // [INST] <<SYS>>
  llama3,       // <|start_header_id|>
  llama31,      // Llama 3 with its dates
  mistral,      // [INST], the spaces as the template has them
  gemma,        // <start_of_turn>
  phi3,         // <|user|> … <|end|>
  deepseek_v2,  // "User: "
  deepseek_v3,  // <｜User｜>: V3, R1, V3.1
  zephyr,       // <|user|> … </s>
  harmony,      // gpt-oss
};

std::string_view name(ChatFormat format);

// From the chat template's text; where the tokenizer brings none, from its vocabulary.
ChatFormat recognize_chat_format(const Tokenizer& tokenizer);

// The prompt up to where the assistant is to speak. It holds BOS as text where the format has one: encode it
// with add_special = false. Error::input for roles or orders that the format does not allow.
std::string render_chat(ChatFormat format, const std::vector<ChatMessage>& messages,
                        const Tokenizer& tokenizer);

}  // namespace assay
