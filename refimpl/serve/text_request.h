// What a client asks for, read from the JSON of /v1/completions and /v1/chat/completions, before any model is asked.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "refimpl/jinja/value.h"
#include "refimpl/sampling/sampling_params.h"
#include "refimpl/serve/request_fields.h"

namespace assay {

struct TextLimits {
  std::size_t prompts = 128;           // of one request, and texts of a prompt
  std::size_t log_probabilities = 20;  // the likeliest of a place
  std::size_t stops = 16, stop_bytes = 4096;
  std::size_t grammar_bytes = 1 << 18;  // and of schemas
};

using PromptGiven = std::variant<std::string, std::vector<TokenId>>;

struct TextRequest {
  std::string model;                 // empty: whichever there is
  std::vector<PromptGiven> prompts;  // of a completion
  std::size_t samples = 1;           // of each
  std::optional<std::size_t> most_tokens;
  SamplingParams sampling;  // stop tokens: those of the request alone
  std::vector<std::string> stops;
  bool keep_stop = false;   // the stop string is part of the text
  bool ignore_end = false;  // a token that ends texts does not
  bool echo = false;
  bool add_special = true;  // BOS … before a prompt that is text
  std::optional<std::size_t> log_probabilities;
  bool ids = false;           // return_token_ids: of prompt and texts
  bool names_as_ids = false;  // return_tokens_as_token_ids: "token_id:42"
  bool stream = false, stream_usage = false;
  std::string grammar;  // GBNF; empty: any text
  std::string salt;
};

// A conversation, for the model's own template.
struct ChatRequestBody {
  TextRequest text;
  jinja::Values messages;
  jinja::Value tools, documents;
  jinja::Dict::Entries variables;
  bool add_generation_prompt = true, continue_final_message = false;
};

// Throw Error::input naming the field.
TextRequest parse_completion(std::string_view body, const TextLimits& limits = {});
ChatRequestBody parse_chat(std::string_view body, const TextLimits& limits = {});

struct TokenizeRequest {
  std::string model, prompt;
  jinja::Values messages;  // in place of a prompt
  jinja::Value tools;
  bool add_special = true, add_generation_prompt = true, pieces = false;
};
TokenizeRequest parse_tokenize(std::string_view body);
struct DetokenizeRequest {
  std::string model;
  std::vector<TokenId> tokens;
};
DetokenizeRequest parse_detokenize(std::string_view body);

}  // namespace assay
