#include "refimpl/serve/text_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/system/text.h"
#include "refimpl/serve/conversation.h"
#include "refimpl/serve/output_form.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostTokens = 1u << 30;
constexpr JsonLimits kBody = {.max_bytes = 1ull << 30, .max_depth = 64, .duplicate_keys = false};

ParsedJson parse_body(std::string_view body) {
  try {
    return parse_json(body, "the request's body", kBody);
  } catch (const Error& error) {
    throw Error::input(error.line());  // of no field
  }
}

std::vector<TokenId> token_list(const ParsedJson& list, std::string_view field) {
  std::vector<TokenId> ids;
  for (const ParsedJson& id : list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > std::numeric_limits<TokenId>::max())
      throw field_error(field, "has to be a list of token ids, which are whole numbers");
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

// A text, a list of texts, a list of ids, or a list of lists of ids.
std::vector<PromptGiven> prompts_of(RequestFields& fields, std::size_t most) {
  const ParsedJson* given = fields.find("prompt");
  if (given == nullptr) throw field_error("prompt", "is missing");
  if (given->is_string()) return {given->get<std::string>()};
  if (!given->is_array() || given->empty())
    throw field_error("prompt", "has to be a text, a list of texts, token ids, or lists of token ids");
  if (given->front().is_number()) return {token_list(*given, "prompt")};
  if (given->size() > most) throw field_error("prompt", fmt::format("holds more than {} prompts", most));
  std::vector<PromptGiven> prompts;
  for (const ParsedJson& each : *given) {
    if (each.is_string()) {
      prompts.emplace_back(each.get<std::string>());
    } else if (each.is_array()) {
      prompts.emplace_back(token_list(each, "prompt"));
    } else {
      throw field_error("prompt", "has to be a text, a list of texts, token ids, or lists of token ids");
    }
  }
  return prompts;
}

// {"42": -3.5}
std::vector<std::pair<TokenId, double>> biases_of(RequestFields& fields) {
  std::vector<std::pair<TokenId, double>> biases;
  const ParsedJson* given = fields.find("logit_bias");
  if (given == nullptr) return biases;
  if (!given->is_object()) throw field_error("logit_bias", "has to be an object of token ids and numbers");
  for (const auto& [name, bias] : given->items()) {
    const auto id = parse_u64(name);
    const double value = bias.is_number() ? bias.get<double>() : 1000;
    if (!id || *id > std::numeric_limits<TokenId>::max() || !(value >= -100 && value <= 100))
      throw field_error("logit_bias", "has to map token ids, as strings, to numbers from -100 to 100");
    biases.emplace_back(static_cast<TokenId>(*id), value);
  }
  return biases;
}

std::vector<std::string> stops_of(RequestFields& fields, const TextLimits& limits) {
  const ParsedJson* given = fields.find("stop");
  std::vector<std::string> stops;
  if (given == nullptr) return stops;
  const ParsedJson list = given->is_array() ? *given : ParsedJson::array({*given});
  if (list.size() > limits.stops)
    throw field_error("stop", fmt::format("holds more than {} strings", limits.stops));
  for (const ParsedJson& each : list) {
    const bool fits = each.is_string() && !each.get_ref<const std::string&>().empty() &&
                      each.get_ref<const std::string&>().size() <= limits.stop_bytes;
    if (!fits)
      throw field_error(
          "stop", fmt::format("has to be a string of 1 to {} bytes, or a list of such", limits.stop_bytes));
    stops.push_back(each.get<std::string>());
  }
  return stops;
}

SamplingParams sampling_of(RequestFields& fields) {
  SamplingParams p;
  p.temperature = fields.number("temperature", 0, 2).value_or(1);
  p.top_p = fields.number("top_p", 0, 1).value_or(1);
  if (p.top_p == 0) throw field_error("top_p", "has to be above 0, at most 1");
  // vLLM writes "all" as -1.
  const ParsedJson* top_k = fields.find("top_k");
  const bool all = top_k != nullptr && *top_k == ParsedJson(-1);
  if (!all) p.top_k = fields.whole("top_k", 0, kMostTokens).value_or(0);
  p.min_p = fields.number("min_p", 0, 1).value_or(0);
  p.typical_p = fields.number("typical_p", 0, 1).value_or(1);
  if (p.typical_p == 0) throw field_error("typical_p", "has to be above 0, at most 1");
  p.repetition_penalty = fields.number("repetition_penalty", 0.01, 100).value_or(1);
  p.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
  p.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
  p.logit_bias = biases_of(fields);
  p.min_tokens = fields.whole("min_tokens", 0, kMostTokens).value_or(0);
  if (const ParsedJson* ids = fields.find("stop_token_ids")) {
    if (!ids->is_array()) throw field_error("stop_token_ids", "has to be a list of token ids");
    p.stop_tokens = token_list(*ids, "stop_token_ids");
  }
  p.seed = fields.whole("seed", 0, std::numeric_limits<std::uint64_t>::max()).value_or(0);
  return p;
}

// What both kinds of request have.
TextRequest text_of(RequestFields& fields, std::string_view body, const TextLimits& limits) {
  TextRequest request;
  request.model = fields.text("model").value_or("");
  request.samples = fields.whole("n", 1, limits.prompts).value_or(1);
  request.sampling = sampling_of(fields);
  request.stops = stops_of(fields, limits);
  request.keep_stop = fields.flag("include_stop_str_in_output").value_or(false);
  request.ignore_end = fields.flag("ignore_eos").value_or(false);
  request.ids = fields.flag("return_token_ids").value_or(false);
  request.names_as_ids = fields.flag("return_tokens_as_token_ids").value_or(false);
  request.salt = fields.text("cache_salt").value_or("");
  request.grammar = output_form(fields, body, limits.grammar_bytes);
  request.stream = fields.flag("stream").value_or(false);
  if (const ParsedJson* options = fields.find("stream_options")) {
    if (!request.stream) throw field_error("stream_options", "goes with stream: true");
    RequestFields inner(*options, "stream_options.");
    request.stream_usage = inner.flag("include_usage").value_or(false);
    inner.pass_over({"include_obfuscation"});
    inner.refuse_others();
  }
  // Who asked, where it is kept, and how soon it is wanted: nothing of the text.
  fields.pass_over({"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"});
  if (request.ignore_end && request.sampling.min_tokens > 0)
    throw field_error("min_tokens", "has no say beside ignore_eos");
  return request;
}

}  // namespace

TextRequest parse_completion(std::string_view body, const TextLimits& limits) {
  const ParsedJson document = parse_body(body);
  RequestFields fields(document);
  TextRequest request = text_of(fields, body, limits);
  request.prompts = prompts_of(fields, limits.prompts);
  request.most_tokens = fields.whole("max_tokens", 0, kMostTokens).value_or(16);
  request.log_probabilities = fields.whole("logprobs", 0, limits.log_probabilities);
  request.echo = fields.flag("echo").value_or(false);
  request.add_special = fields.flag("add_special_tokens").value_or(true);
  if (request.most_tokens == 0 && request.samples > 1)
    throw field_error("n", "has no say beside max_tokens: 0");
  fields.refuse_but("suffix", "", "is not supported: texts are written from left to right");
  fields.refuse_but("best_of", request.samples, "is not supported but with the value of n");
  fields.refuse_others();
  return request;
}

ChatRequestBody parse_chat(std::string_view body, const TextLimits& limits) {
  const ParsedJson document = parse_body(body);
  RequestFields fields(document);
  ChatRequestBody request;
  request.text = text_of(fields, body, limits);
  const auto old_name = fields.whole("max_tokens", 0, kMostTokens);
  const auto new_name = fields.whole("max_completion_tokens", 0, kMostTokens);
  if (old_name && new_name && *old_name != *new_name)
    throw field_error("max_tokens", "is not what max_completion_tokens is");
  request.text.most_tokens = new_name ? new_name : old_name;
  const bool wanted = fields.flag("logprobs").value_or(false);
  const auto top = fields.whole("top_logprobs", 0, limits.log_probabilities);
  if (top && !wanted) throw field_error("top_logprobs", "goes with logprobs: true");
  if (wanted) request.text.log_probabilities = top.value_or(0);
  if (request.text.most_tokens == 0) throw field_error("max_tokens", "has to be at least 1");
  read_conversation(fields, body, request);
  fields.refuse_others();
  return request;
}

TokenizeRequest parse_tokenize(std::string_view body) {
  const ParsedJson document = parse_body(body);
  RequestFields fields(document);
  TokenizeRequest request;
  request.model = fields.text("model").value_or("");
  request.pieces = fields.flag("return_token_strs").value_or(false);
  request.add_special = fields.flag("add_special_tokens").value_or(fields.find("messages") == nullptr);
  if (fields.find("messages") != nullptr) {
    ChatRequestBody chat;
    read_conversation(fields, body, chat);
    request.messages = chat.messages;
    request.tools = chat.tools;
    request.add_generation_prompt = chat.add_generation_prompt;
    if (!chat.variables.empty() || chat.continue_final_message)
      throw field_error("messages", "are rendered plainly here");
  } else {
    const auto prompt = fields.text("prompt");
    if (!prompt) throw field_error("prompt", "is missing");
    request.prompt = *prompt;
  }
  fields.refuse_others();
  return request;
}

DetokenizeRequest parse_detokenize(std::string_view body) {
  const ParsedJson document = parse_body(body);
  RequestFields fields(document);
  DetokenizeRequest request;
  request.model = fields.text("model").value_or("");
  const ParsedJson* tokens = fields.find("tokens");
  if (tokens == nullptr || !tokens->is_array()) throw field_error("tokens", "has to be a list of token ids");
  request.tokens = token_list(*tokens, "tokens");
  fields.refuse_others();
  return request;
}

}  // namespace assay
