#include "refimpl/chat_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/message.h"
#include "core/system/text.h"
#include "refimpl/jinja/json_value.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostJsonBytes = 64u << 20;

jinja::Value list_from_file(const std::string& path, std::string_view what) {
  if (path.empty()) return {};
  try {
    jinja::Value list = jinja::value_from_json(read_small_file(path, kMostJsonBytes));
    if (!list.is(jinja::Type::list)) throw Error::input(fmt::format("{} have to be a JSON list", what));
    return list;
  } catch (Error& error) {
    throw error.in(path);
  }
}

jinja::Dict::Entries variables_of(const ChatOptions& options) {
  jinja::Dict::Entries variables;
  if (!options.thinking.empty()) {
    for (const char* name : {"enable_thinking", "thinking"})
      variables.emplace_back(jinja::text(name), jinja::Value::of_bool(options.thinking == "on"));
  }
  if (options.variables.empty()) return variables;
  jinja::Value given;
  try {
    given = jinja::value_from_json(options.variables);
  } catch (const Error& error) {
    throw Error::usage("--template-kwargs: " + error.message());
  }
  if (!given.is_dict())
    throw Error::usage("--template-kwargs takes a JSON object, such as '{\"reasoning_effort\": \"low\"}'");
  for (const auto& entry : given.as_dict().entries) {
    for (const std::string_view own : {"messages", "tools", "documents", "add_generation_prompt"}) {
      if (entry.first.str() == own)
        throw Error::usage(fmt::format("--template-kwargs: '{}' has an option of its own", own));
    }
    variables.push_back(entry);
  }
  return variables;
}

ChatRequest request_of(const ChatOptions& options) {
  ChatRequest request;
  if (!options.system.empty()) request.messages.push_back(chat_message("system", options.system));
  if (!options.messages.empty()) {
    const jinja::Values more =
        chat_messages(read_small_file(options.messages, kMostJsonBytes), options.messages);
    request.messages.insert(request.messages.end(), more.begin(), more.end());
  }
  request.tools = list_from_file(options.tools, "tools");
  request.documents = list_from_file(options.documents, "documents");
  request.variables = variables_of(options);
  request.add_generation_prompt = !options.no_generation_prompt;
  request.continue_final_message = options.continue_final_message;
  if (!options.now.empty()) {
    request.now = jinja::moment_from_text(options.now);
    if (!request.now) throw Error::usage("--now takes a time as 2026-01-31 or 2026-01-31T23:59:00");
  }
  return request;
}

}  // namespace

void add_chat_options(CLI::App& command, ChatOptions& o, const std::string& chat_help) {
  command.add_flag("--chat", o.chat, chat_help);
  command.add_option("--system", o.system, "Of --chat: the system's message")->type_name("TEXT");
  command.add_option("--messages", o.messages, "A conversation as JSON: [{\"role\": …, \"content\": …}, …]")
      ->type_name("FILE");
  command.add_option("--tools", o.tools, "Of --chat: tools as JSON, as OpenAI's API has them")
      ->type_name("FILE");
  command.add_option("--documents", o.documents, "Of --chat: documents as JSON")->type_name("FILE");
  command.add_option("--thinking", o.thinking, "Of --chat: on or off, for templates that can")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("on|off");
  command.add_option("--template-kwargs", o.variables, "Of --chat: more variables of the template")
      ->type_name("JSON");
  command
      .add_option("--chat-template", o.chat_template, "Of --chat: another template than the model's default")
      ->type_name("FILE|NAME");
  command.add_flag("--no-generation-prompt", o.no_generation_prompt,
                   "Of --chat: end behind the last message");
  command.add_flag("--continue-final-message", o.continue_final_message,
                   "Of --chat: the last message goes on, nobody else begins to speak");
  command.add_option("--now", o.now, "Of --chat: the time that templates see (default: the clock's)")
      ->type_name("TIME");
}

void check_chat_options(const ChatOptions& o) {
  if (o.wanted()) return;
  const bool any = !o.system.empty() || !o.tools.empty() || !o.documents.empty() || !o.variables.empty() ||
                   !o.chat_template.empty() || !o.thinking.empty() || !o.now.empty() ||
                   o.no_generation_prompt || o.continue_final_message;
  if (any)
    throw Error::usage(
        "--system, --tools, --documents, --thinking, --template-kwargs, --chat-template, --now, "
        "--no-generation-prompt and --continue-final-message go with --chat or --messages");
}

Chat::Chat(const Tokenizer& tokenizer, const ChatOptions& options)
    : template_(ChatTemplate::of(tokenizer, options.chat_template, !options.tools.empty())),
      request_(request_of(options)) {
  write_message(fmt::format("note: chat template {}", escape_for_terminal(template_.name())));
}

std::string Chat::prompt(std::optional<std::string_view> user) const {
  jinja::Values turns;
  if (user) turns.push_back(chat_message("user", *user));
  return prompt_of(turns);
}

std::string Chat::prompt_of(const jinja::Values& turns) const {
  ChatRequest request = request_;
  request.messages.insert(request.messages.end(), turns.begin(), turns.end());
  try {
    return template_.render(request);
  } catch (Error& error) {
    throw error.remedy(
        "another template can be named with --chat-template, its variables with --template-kwargs");
  }
}

}  // namespace assay
