#include "refimpl/tokenizers/chat_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"
#include "refimpl/jinja/json_value.h"
#include "refimpl/jinja/unicode.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using jinja::Dict;
using jinja::Value;
using jinja::Values;

constexpr std::uint64_t kMostTemplateFile = 4u << 20;
// Put behind the last message where it is to be gone on with, and looked for in the prompt.
constexpr std::string_view kMark = "CONTINUE_FINAL_MESSAGE_TAG ";

const Value* member_of(const Value& message, std::string_view key) {
  const Value* found = message.is_dict() ? message.as_dict().find(key) : nullptr;
  return found == nullptr || found->is_none() ? nullptr : found;
}

// A message's thoughts go by three names. As transformers does it: templates read the first, old ones `thinking`.
Value with_named_thoughts(const Value& message) {
  const Value* thoughts = nullptr;
  for (const std::string_view name : {"reasoning_content", "thinking", "reasoning"}) {
    if (thoughts == nullptr) thoughts = member_of(message, name);
  }
  if (thoughts == nullptr) return message;
  Dict::Entries entries = {{jinja::text("thinking"), *thoughts}};
  const Dict::Entries& own = message.as_dict().entries;
  entries.insert(entries.end(), own.begin(), own.end());
  entries.emplace_back(jinja::text("reasoning_content"), *thoughts);
  return jinja::dict(std::move(entries));
}

Value without_nones(const Value& message) {
  Dict::Entries entries;
  for (const auto& entry : message.as_dict().entries) {
    if (!entry.second.is_none()) entries.push_back(entry);
  }
  return jinja::dict(std::move(entries));
}

Value with_member(const Value& dict, std::string_view key, Value value) {
  Dict::Entries entries = dict.as_dict().entries;
  entries.emplace_back(jinja::text(std::string(key)), std::move(value));
  return jinja::dict(std::move(entries));
}

[[noreturn]] void refuse_to_continue(std::string_view why) {
  throw Error::input(fmt::format("the last message cannot be gone on with: {}", why));
}

// The last message with the mark behind its text; `text` becomes that text.
Value marked(const Value& message, std::string& text) {
  const Value* content = member_of(message, "content");
  if (content == nullptr) refuse_to_continue("it has no content");
  if (content->is_text()) {
    text = content->str();
    return with_member(message, "content", jinja::text(text + std::string(kMark)));
  }
  if (!content->is_sequence()) refuse_to_continue("its content is no text");
  Values parts = content->items();
  for (std::size_t i = parts.size(); i-- > 0;) {
    const Value* part = member_of(parts[i], "text");
    if (part == nullptr || !part->is_text()) continue;
    text = part->str();
    parts[i] = with_member(parts[i], "text", jinja::text(text + std::string(kMark)));
    return with_member(message, "content", jinja::list(std::move(parts)));
  }
  refuse_to_continue("no part of its content is text");
}

// The prompt up to the mark; blanks before it go where the template has taken off those of the message.
std::string cut_at_mark(const std::string& prompt, const std::string& text) {
  const std::string_view bare = kMark.substr(0, kMark.size() - 1);
  const std::size_t at = prompt.rfind(bare);
  const std::string inner(jinja::stripped(text, jinja::Side::both));
  if (at == std::string::npos || prompt.find(inner) == std::string::npos)
    refuse_to_continue("the template does not write it as it is");
  const std::string_view before = std::string_view(prompt).substr(0, at);
  const bool spaced = std::string_view(prompt).substr(at).starts_with(kMark);
  return std::string(spaced ? before : jinja::stripped(before, jinja::Side::right));
}

const NamedTemplate& choose(const Tokenizer& tokenizer, const std::string& choice, bool with_tools) {
  const std::vector<NamedTemplate>& all = tokenizer.chat_templates();
  const auto named = [&](std::string_view name) -> const NamedTemplate* {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
    return found == all.end() ? nullptr : &*found;
  };
  if (all.empty() && choice.empty())
    throw Error::input("the model brings no chat template")
        .remedy("name one with --chat-template FILE, or write the prompt out, without --chat");
  const NamedTemplate* chosen = nullptr;
  if (!choice.empty()) chosen = named(choice);
  if (choice.empty() && with_tools) chosen = named("tool_use");
  if (choice.empty() && chosen == nullptr) chosen = all.size() == 1 ? &all.front() : named("default");
  if (chosen != nullptr) return *chosen;
  std::vector<std::string> names;
  for (const NamedTemplate& each : all) names.push_back(escape_for_terminal(each.name));
  throw Error::input(fmt::format("no file and no template of the model is called '{}'; the model has {}",
                                 escape_for_terminal(choice.empty() ? "default" : choice),
                                 names.empty() ? "none" : fmt::to_string(fmt::join(names, ", "))))
      .remedy("name one with --chat-template");
}

}  // namespace

jinja::Value chat_message(std::string_view role, std::string_view content) {
  if (!is_valid_utf8(content)) throw Error::input("a message is not UTF-8, and templates take nothing else");
  return jinja::dict({{jinja::text("role"), jinja::text(std::string(role))},
                      {jinja::text("content"), jinja::text(std::string(content))}});
}

jinja::Values chat_messages(std::string_view json, const fs::path& source) {
  try {
    const Value given = jinja::value_from_json(json);
    const Value* inside = member_of(given, "messages");
    const Value& list = inside != nullptr ? *inside : given;
    const bool fits = list.is(jinja::Type::list) && std::all_of(list.items().begin(), list.items().end(),
                                                                [](const Value& v) { return v.is_dict(); });
    if (!fits)
      throw Error::input(
          "messages have to be a list of objects, such as [{\"role\": \"user\", \"content\": \"Hi\"}]");
    return list.items();
  } catch (Error& error) {
    throw error.in(source);
  }
}

ChatTemplate ChatTemplate::of(const Tokenizer& tokenizer, const std::string& choice, bool with_tools) {
  const auto& tokens = tokenizer.template_tokens();
  if (!choice.empty() && fs::is_regular_file(choice)) {
    std::string source = read_small_file(choice, kMostTemplateFile);
    jinja::Template chat = jinja::Template::parse(source, choice);
    return ChatTemplate(std::move(chat), std::move(source), tokens);
  }
  const NamedTemplate& chosen = choose(tokenizer, choice, with_tools);
  return ChatTemplate(jinja::Template::parse(chosen.text, chosen.source), chosen.text, tokens);
}

std::string ChatTemplate::render(const ChatRequest& request) const {
  if (request.messages.empty()) throw Error::input("a conversation without any message");
  Values messages;
  for (const Value& message : request.messages)
    messages.push_back(with_named_thoughts(without_nones(message)));
  std::string last;
  if (request.continue_final_message) {
    if (source_.find("content") == std::string::npos)
      refuse_to_continue("the template never looks at contents");
    messages.back() = marked(messages.back(), last);
  }
  Dict::Entries variables;
  for (const auto& [name, token] : tokens_) variables.emplace_back(jinja::text(name), jinja::text(token));
  variables.insert(variables.end(), request.variables.begin(), request.variables.end());
  const auto or_none = [](const Value& v) { return v.is_missing() ? Value::none() : v; };
  variables.emplace_back(jinja::text("messages"), jinja::list(std::move(messages)));
  variables.emplace_back(jinja::text("tools"), or_none(request.tools));
  variables.emplace_back(jinja::text("documents"), or_none(request.documents));
  variables.emplace_back(jinja::text("add_generation_prompt"),
                         Value::of_bool(request.add_generation_prompt && !request.continue_final_message));
  jinja::RenderOptions options;
  options.now = request.now;
  const std::string prompt = template_.render(std::move(variables), options);
  return request.continue_final_message ? cut_at_mark(prompt, last) : prompt;
}

}  // namespace assay
