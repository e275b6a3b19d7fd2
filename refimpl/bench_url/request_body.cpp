#include "refimpl/bench_url/request_body.h"

#include "core/system/json.h"

namespace assay {

std::string request_body(const RequestShape& shape, const PromptSent& prompt, std::size_t output_tokens,
                         bool stream) {
  Json body = Json::object();
  if (!shape.model.empty()) body["model"] = shape.model;
  const auto* text = std::get_if<std::string>(&prompt);
  if (shape.kind == EndpointKind::chat) {
    body["messages"] = Json::array({{{"role", "user"}, {"content", text != nullptr ? *text : ""}}});
  } else if (text != nullptr) {
    body["prompt"] = *text;
  } else {
    body["prompt"] = std::get<std::vector<TokenNumber>>(prompt);
  }
  body["max_tokens"] = output_tokens;
  body["temperature"] = shape.temperature;
  if (shape.ignore_end) body["ignore_eos"] = true;
  if (shape.token_ids) body["return_token_ids"] = true;
  if (shape.log_probabilities && shape.kind == EndpointKind::chat) body["logprobs"] = true;
  if (shape.log_probabilities && shape.kind == EndpointKind::completions) body["logprobs"] = 1;
  if (!stream) return dump_json(body, -1);
  body["stream"] = true;
  if (shape.stream_usage) {
    body["stream_options"] = {{"include_usage", true}};
    if (shape.continuous_usage) body["stream_options"]["continuous_usage_stats"] = true;
  }
  return dump_json(body, -1);
}

}  // namespace assay
