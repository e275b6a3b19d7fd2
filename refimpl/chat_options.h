// The options that say what a chat template is rendered with: of `run` and `tokenize`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/system/command_line.h"
#include "refimpl/tokenizers/chat_template.h"

namespace assay {

struct ChatOptions {
  bool chat = false;
  std::string system, messages, tools, documents, variables, chat_template, thinking, now;
  bool no_generation_prompt = false, continue_final_message = false;

  bool wanted() const { return chat || !messages.empty(); }
};

void add_chat_options(CLI::App& command, ChatOptions& options, const std::string& chat_help);
// Throws Error::usage for options that go with --chat or --messages, and neither is there.
void check_chat_options(const ChatOptions& options);

// Conversations of one template. The template's name is told on stderr.
class Chat {
 public:
  Chat(const Tokenizer& tokenizer, const ChatOptions& options);

  // --system and --messages, and behind them what the user says now.
  std::string prompt(std::optional<std::string_view> user) const;
  // Turn after turn.
  std::string prompt_of(const jinja::Values& turns) const;

 private:
  ChatTemplate template_;
  ChatRequest request_;
};

}  // namespace assay
