#include "refimpl/endpoint/stream_chunk.h"

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kMostTold = 200;  // of a message

const ParsedJson* member(const ParsedJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_at(const ParsedJson& object, const char* key) {
  const ParsedJson* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

std::optional<UsageTold> usage_in(const ParsedJson& document) {
  const ParsedJson* usage = member(document, "usage");
  if (usage == nullptr) return std::nullopt;
  const ParsedJson* prompt = member(*usage, "prompt_tokens");
  const ParsedJson* made = member(*usage, "completion_tokens");
  if (prompt == nullptr || made == nullptr || !prompt->is_number_unsigned() || !made->is_number_unsigned())
    return std::nullopt;
  return UsageTold{prompt->get<std::size_t>(), made->get<std::size_t>()};
}

std::string message_in(const ParsedJson& document) {
  if (const ParsedJson* error = member(document, "error")) {
    if (error->is_string()) return error->get<std::string>();
    if (const std::string message = text_at(*error, "message"); !message.empty()) return message;
    return error->dump(-1, ' ', false, ParsedJson::error_handler_t::replace);
  }
  return text_at(document, "object") == "error" ? text_at(document, "message") : "";
}

// Completions: {"tokens": ["a", …]}; chats: {"content": [{"token": "a", "bytes": [97]}, …]}.
void read_log_probabilities(const ParsedJson& choice, StreamChunk& chunk) {
  const ParsedJson* given = member(choice, "logprobs");
  if (given == nullptr) return;
  const ParsedJson* tokens = member(*given, "tokens");
  if (tokens == nullptr) tokens = member(*given, "content");
  if (tokens == nullptr || !tokens->is_array()) return;
  if (!chunk.tokens) chunk.tokens = tokens->size();
  for (const ParsedJson& token : *tokens) {
    if (token.is_string()) {
      chunk.pieces.push_back(token.get<std::string>());
    } else {
      chunk.pieces.push_back(text_at(token, "token"));
    }
  }
}

// Of calls of tools only that something came.
std::string text_of_delta(const ParsedJson& delta) {
  std::string text =
      text_at(delta, "reasoning_content") + text_at(delta, "reasoning") + text_at(delta, "content");
  if (const ParsedJson* calls = member(delta, "tool_calls"))
    text += calls->dump(-1, ' ', false, ParsedJson::error_handler_t::replace);
  return text;
}

}  // namespace

StreamChunk parse_stream_chunk(std::string_view data) {
  StreamChunk chunk;
  if (trim(data) == "[DONE]") {
    chunk.done = true;
    return chunk;
  }
  const ParsedJson document = parse_json(data, "an event");
  if (!document.is_object()) throw Error::input("an event is no JSON object");
  chunk.error = message_in(document);
  chunk.usage = usage_in(document);
  const ParsedJson* choices = member(document, "choices");
  if (choices == nullptr || !choices->is_array() || choices->empty()) return chunk;
  const ParsedJson& choice = choices->front();
  chunk.has_choice = true;
  const ParsedJson* delta = member(choice, "delta");
  chunk.text = delta != nullptr ? text_of_delta(*delta) : text_at(choice, "text");
  chunk.finish_reason = text_at(choice, "finish_reason");
  if (const ParsedJson* ids = member(choice, "token_ids"); ids != nullptr && ids->is_array())
    chunk.tokens = ids->size();
  read_log_probabilities(choice, chunk);
  return chunk;
}

std::optional<UsageTold> usage_of_answer(std::string_view body) {
  return usage_in(parse_json(body, "the answer"));
}

std::string error_message_of(std::string_view body) {
  std::string message;
  try {
    message = message_in(parse_json(body, "the answer"));
  } catch (const Error&) {  // a proxy's page, perhaps
  }
  if (message.empty()) message = body.substr(0, kMostTold);
  return escape_for_terminal(std::string_view(message).substr(0, kMostTold));
}

}  // namespace assay
