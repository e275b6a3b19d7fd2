#include "refimpl/serve/conversation.h"

#include <fmt/format.h>

#include "refimpl/jinja/json_value.h"

namespace assay {
namespace {

using jinja::Dict;
using jinja::Value;
using jinja::Values;

const Value* member(const Value& dict, std::string_view key) {
  const Value* found = dict.is_dict() ? dict.as_dict().find(key) : nullptr;
  return found == nullptr || found->is_none() ? nullptr : found;
}

bool is_text(const Value* value, std::string_view expected) {
  return value != nullptr && value->is_text() && value->str() == expected;
}

Value joined_content(const Value& content, const std::string& field) {
  if (!content.is_sequence()) {
    if (content.is_text() || content.is_none()) return content;
    throw field_error(field, "has to be a text, or a list of texts");
  }
  std::string text;
  for (const Value& part : content.items()) {
    const Value* words = member(part, "text");
    if (!is_text(member(part, "type"), "text") || words == nullptr || !words->is_text())
      throw field_error(field, "has a part that is no text: nothing else can be read here");
    text += (text.empty() ? "" : "\n") + words->str();
  }
  return jinja::text(std::move(text));
}

Value with_entry(const Value& dict, std::string_view key, const Value& value) {
  Dict::Entries entries;
  for (const auto& entry : dict.as_dict().entries)
    entries.emplace_back(entry.first, entry.first.str() == key ? value : entry.second);
  return jinja::dict(std::move(entries));
}

Value parsed_arguments(const Value& call, const std::string& field) {
  const Value* function = member(call, "function");
  const Value* arguments = function == nullptr ? nullptr : member(*function, "arguments");
  if (arguments == nullptr || !arguments->is_text() || arguments->str().empty()) return call;
  try {
    return with_entry(call, "function",
                      with_entry(*function, "arguments", jinja::value_from_json(arguments->str())));
  } catch (const Error& error) {
    throw field_error(field + ".function.arguments", error.line());
  }
}

Value message_of(const Value& given, const std::string& field) {
  if (!given.is_dict()) throw field_error(field, "has to be an object");
  const Value* role = member(given, "role");
  if (role == nullptr || !role->is_text()) throw field_error(field + ".role", "has to be a string");
  Value message = given;
  if (const Value* content = given.as_dict().find("content"))
    message = with_entry(message, "content", joined_content(*content, field + ".content"));
  const Value* calls = member(given, "tool_calls");
  if (calls == nullptr) return message;
  if (!calls->is_sequence()) throw field_error(field + ".tool_calls", "has to be a list");
  Values parsed;
  for (const Value& call : calls->items()) parsed.push_back(parsed_arguments(call, field + ".tool_calls"));
  return with_entry(message, "tool_calls", jinja::list(std::move(parsed)));
}

Value list_of_objects(const Value& document, std::string_view name) {
  const Value* given = member(document, name);
  if (given == nullptr || (given->is_sequence() && given->items().empty())) return {};
  if (!given->is_sequence()) throw field_error(name, "has to be a list of objects");
  for (const Value& each : given->items())
    if (!each.is_dict()) throw field_error(name, "has to be a list of objects");
  return *given;
}

Dict::Entries variables_of(const Value& document) {
  const Value* given = member(document, "chat_template_kwargs");
  if (given == nullptr) return {};
  if (!given->is_dict()) throw field_error("chat_template_kwargs", "has to be an object");
  for (const auto& entry : given->as_dict().entries)
    for (const std::string_view own :
         {"messages", "tools", "documents", "add_generation_prompt", "continue_final_message"})
      if (entry.first.str() == own)
        throw field_error("chat_template_kwargs", fmt::format("{} has a field of its own", own));
  return given->as_dict().entries;
}

// Calls are not read out of the text, so that nothing that asks for one can be promised.
bool tools_are_shown(RequestFields& fields) {
  const std::optional<std::string> choice = fields.text("tool_choice");
  if (choice && *choice != "auto" && *choice != "none")
    throw field_error("tool_choice", "has to be auto or none: no call can be forced here");
  fields.pass_over({"parallel_tool_calls"});
  return choice != "none";
}

}  // namespace

void read_conversation(RequestFields& fields, std::string_view body, ChatRequestBody& request) {
  const Value document = jinja::value_from_json(body);
  fields.pass_over({"tools", "documents", "chat_template_kwargs"});
  const ParsedJson* messages = fields.find("messages");
  if (messages == nullptr) throw field_error("messages", "is missing");
  if (!messages->is_array() || messages->empty())
    throw field_error("messages", "has to be a list of at least one message");
  const Values& given = document.as_dict().find("messages")->items();
  for (std::size_t i = 0; i < given.size(); ++i)
    request.messages.push_back(message_of(given[i], fmt::format("messages[{}]", i)));
  const Value tools = list_of_objects(document, "tools");
  if (tools_are_shown(fields)) request.tools = tools;
  request.documents = list_of_objects(document, "documents");
  request.variables = variables_of(document);
  request.add_generation_prompt = fields.flag("add_generation_prompt").value_or(true);
  request.continue_final_message = fields.flag("continue_final_message").value_or(false);
  fields.refuse_but("modalities", ParsedJson::array({"text"}), "can be text alone");
}

}  // namespace assay
