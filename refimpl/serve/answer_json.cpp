#include "refimpl/serve/answer_json.h"

#include <cmath>

namespace assay {
namespace {

// JSON has no infinity: what can never come is as unlikely as others write it.
Json finite(double log_probability) {
  return std::isfinite(log_probability) ? log_probability : -9999.0;
}

Json reason_json(const TextPart& part) {
  if (!part.reason) return nullptr;
  return *part.reason == FinishReason::stop ? "stop" : "length";
}

Json or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

Json error_json(std::string_view message, std::string_view type, std::string_view param,
                std::string_view code) {
  return {
      {"error", {{"message", message}, {"type", type}, {"param", or_null(param)}, {"code", or_null(code)}}}};
}

Json to_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json AnswerWriter::head(bool chunk) const {
  const bool chat = head_.kind == AnswerKind::chat;
  return {{"id", head_.id},
          {"object", !chat   ? "text_completion"
                     : chunk ? "chat.completion.chunk"
                             : "chat.completion"},
          {"created", head_.created},
          {"model", head_.model},
          {"system_fingerprint", head_.fingerprint}};
}

Json AnswerWriter::document(const Json& choices, const Usage& usage) const {
  Json answer = head(false);
  answer["choices"] = choices;
  answer["usage"] = to_json(usage);
  return answer;
}

Json AnswerWriter::chunk(const Json& choices) const {
  Json answer = head(true);
  answer["choices"] = choices;
  return answer;
}

Json AnswerWriter::choice(std::size_t index, const TextPart& part, const std::vector<TokenId>& prompt) const {
  Json choice = {{"index", index}};
  if (head_.kind == AnswerKind::chat) {
    choice["message"] = {{"role", "assistant"}, {"content", part.text}, {"refusal", nullptr}};
  } else {
    choice["text"] = part.text;
  }
  choice["logprobs"] = log_probabilities(part);
  choice["finish_reason"] = reason_json(part);
  if (ids_) {
    choice["prompt_token_ids"] = prompt;
    choice["token_ids"] = part.ids;
  }
  return choice;
}

Json AnswerWriter::chunk_choice(std::size_t index, const TextPart& part, bool first) const {
  Json choice = {{"index", index}};
  if (head_.kind == AnswerKind::chat) {
    Json delta = Json::object();
    if (first) delta["role"] = "assistant";
    if (first || !part.text.empty()) delta["content"] = part.text;
    choice["delta"] = delta;
  } else {
    choice["text"] = part.text;
  }
  choice["logprobs"] = log_probabilities(part);
  choice["finish_reason"] = reason_json(part);
  if (ids_) choice["token_ids"] = part.ids;
  return choice;
}

Json AnswerWriter::log_probabilities(const TextPart& part) const {
  if (part.tokens.empty()) return nullptr;
  if (head_.kind == AnswerKind::chat) return chat_log_probabilities(part);
  Json tokens = Json::array(), own = Json::array(), top = Json::array(), offsets = Json::array();
  for (const ScoredToken& token : part.tokens) {
    tokens.push_back(names_.name(token.id, as_ids_));
    offsets.push_back(token.offset);
    if (!token.likely) {
      own.push_back(nullptr);
      top.push_back(nullptr);
      continue;
    }
    own.push_back(finite(token.likely->log_probability));
    Json likeliest = Json::object();
    for (const auto& [id, log_probability] : token.likely->likeliest)
      likeliest[names_.name(id, as_ids_)] = finite(log_probability);
    likeliest[names_.name(token.id, as_ids_)] = finite(token.likely->log_probability);
    top.push_back(std::move(likeliest));
  }
  return {{"tokens", tokens}, {"token_logprobs", own}, {"top_logprobs", top}, {"text_offset", offsets}};
}

Json AnswerWriter::named(TokenId id, double log_probability) const {
  const std::string own = names_.bytes(id);
  return {{"token", names_.name(id, as_ids_)},
          {"logprob", finite(log_probability)},
          {"bytes", std::vector<std::uint8_t>(own.begin(), own.end())}};
}

Json AnswerWriter::chat_log_probabilities(const TextPart& part) const {
  Json content = Json::array();
  for (const ScoredToken& token : part.tokens) {
    Json entry = named(token.id, token.likely ? token.likely->log_probability : 0);
    entry["top_logprobs"] = Json::array();
    if (token.likely)
      for (const auto& [id, log_probability] : token.likely->likeliest)
        entry["top_logprobs"].push_back(named(id, log_probability));
    content.push_back(std::move(entry));
  }
  return {{"content", content}, {"refusal", nullptr}};
}

}  // namespace assay
