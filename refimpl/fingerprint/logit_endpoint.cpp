#include "refimpl/fingerprint/logit_endpoint.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "core/system/json.h"

namespace assay {
namespace {

constexpr std::size_t kPromptsAtOnce = 64;
constexpr std::size_t kFewLikely = 5;  // OpenAI's completions give no more

Json json_of(const PromptSent& prompt) {
  const auto* text = std::get_if<std::string>(&prompt);
  return text != nullptr ? Json(*text) : Json(std::get<std::vector<TokenNumber>>(prompt));
}

}  // namespace

std::string name_of(const std::optional<std::uint32_t>& id, const std::string& text) {
  return id ? fmt::format("token_id:{}", *id) : text;
}

LogitEndpoint::LogitEndpoint(EndpointClient& client, EndpointKind kind, std::string model)
    : client_(client), kind_(kind), model_(std::move(model)) {}

std::string LogitEndpoint::body(std::span<const PromptSent> prompts, std::size_t top,
                                const std::vector<std::pair<TokenNumber, double>>& biases) const {
  Json body = {{"max_tokens", 1}, {"temperature", 0}};
  if (!model_.empty()) body["model"] = model_;
  if (kind_ == EndpointKind::chat) {
    body["messages"] = Json::array({{{"role", "user"}, {"content", json_of(prompts.front())}}});
    body["logprobs"] = true;
    body["top_logprobs"] = top;
  } else {
    Json all = Json::array();
    for (const PromptSent& prompt : prompts) all.push_back(json_of(prompt));
    body["prompt"] = prompts.size() == 1 ? all.front() : all;
    body["logprobs"] = top;
  }
  for (const auto& [id, bias] : biases) body["logit_bias"][std::to_string(id)] = bias;
  if (ids_as_names_) body["return_tokens_as_token_ids"] = true;
  if (ignore_end_) body["ignore_eos"] = true;
  return dump_json(body, -1);
}

NextTokens LogitEndpoint::ask(std::span<const PromptSent> prompts, std::size_t top,
                              const std::vector<std::pair<TokenNumber, double>>& biases) {
  ++requests_;
  const HttpAnswer answer = client_.post(route_of(kind_), body(prompts, top, biases));
  if (answer.status == 0) throw Error::io("the server does not answer: " + answer.failure);
  require_key(answer);
  if (!answer.ok()) return {{}, answer.why()};
  NextTokens next;
  try {
    for (logprobs::SavedText& text : logprobs::parse_responses(answer.body, "the server's answer").texts) {
      if (text.tokens.empty() || !text.tokens.back().logprob)
        return {{}, "no log-probabilities are in the answer"};
      next.tokens.push_back(std::move(text.tokens.back()));
    }
  } catch (const Error& error) {
    return {{}, error.message()};
  }
  if (next.tokens.size() != prompts.size())
    return {{}, fmt::format("{} answers to {} prompts", next.tokens.size(), prompts.size())};
  return next;
}

bool LogitEndpoint::learn(const PromptSent& prompt) {
  const std::pair<bool, bool> words[] = {{true, true}, {false, true}, {false, false}};
  for (const auto& [ids, end] : words) {
    ids_as_names_ = ids;
    ignore_end_ = end;
    const NextTokens next = ask({&prompt, 1}, kFewLikely);
    why_ = next.refused;
    if (!why_.empty()) continue;
    const std::vector<PromptSent> twice(2, prompt);
    if (kind_ == EndpointKind::completions && ask(twice, kFewLikely).refused.empty())
      most_prompts_ = kPromptsAtOnce;
    return true;
  }
  return false;
}

}  // namespace assay
