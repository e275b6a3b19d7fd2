// Prompts as chat models want them: their own template, rendered as transformers' apply_chat_template does.
//
//   const ChatTemplate chat = ChatTemplate::of(tokenizer, "", false);
//   std::string prompt = chat.render({.messages = chat_messages(R"([{"role": "user", "content": "Hi"}])", "m.json")});
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "refimpl/jinja/template.h"
#include "refimpl/jinja/value.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

struct ChatRequest {
  jinja::Values messages;               // dicts
  jinja::Value tools, documents;        // lists of dicts; missing: none
  jinja::Dict::Entries variables;       // what else the template can name; they hide the tokenizer's tokens
  bool add_generation_prompt = true;    // up to where the assistant is to speak
  bool continue_final_message = false;  // up to the end of the last message instead
  std::optional<jinja::Moment> now;     // for strftime_now; the clock's where there is none
};

// {"role": role, "content": content}
jinja::Value chat_message(std::string_view role, std::string_view content);
// A list of messages; throws Error::input with `source` for anything else.
jinja::Values chat_messages(std::string_view json, const std::filesystem::path& source);

class ChatTemplate {
 public:
  // `choice`: a file, or the name of one of several templates; empty: the model's own, of several that for tools
  // where tools are given. Throws Error::input where there is none, or none of that name.
  static ChatTemplate of(const Tokenizer& tokenizer, const std::string& choice, bool with_tools);

  // The prompt; it holds BOS as text where the template writes one: encode it with add_special = false. Throws
  // Error::input where the template raises, with its name and a line.
  std::string render(const ChatRequest& request) const;
  const std::string& name() const { return template_.name(); }

 private:
  ChatTemplate(jinja::Template chat, std::string source,
               std::vector<std::pair<std::string, std::string>> tokens)
      : template_(std::move(chat)), source_(std::move(source)), tokens_(std::move(tokens)) {}
  jinja::Template template_;
  std::string source_;
  std::vector<std::pair<std::string, std::string>> tokens_;  // "bos_token": "<s>" …
};

}  // namespace assay
