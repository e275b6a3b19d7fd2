// llama-server's /completion with n_probs:
//
//   {"prompt": "<s>Once", "tokens_evaluated": 2, "completion_probabilities":
//     [{"id": 7, "token": " b", "bytes": [32, 98], "logprob": -0.2, "top_logprobs": [{"id": …}, …]}]}
//
// With post_sampling_probs it is `prob` and `top_probs`, after temperature and samplers
// (llama.cpp, tools/server/server-task.cpp). Of the prompt it has no probabilities.
#include <fmt/format.h>

#include <cmath>

#include "core/formats/logprobs/response_json.h"

namespace assay::logprobs {
namespace {

// Either of the two.
std::optional<double> either(const OrderedJson& token, const ResponsePlace& place) {
  if (const OrderedJson* logprob = member(token, "logprob")) return logprob_of(*logprob, place);
  const OrderedJson* prob = member(token, "prob");
  if (prob == nullptr) return std::nullopt;
  if (!prob->is_number() || !(prob->get<double>() >= 0))
    throw place.error("a token's prob is no number from 0 to 1");
  return checked_logprob(std::log(prob->get<double>()), place);
}

SavedToken listed(const OrderedJson& value, const ResponsePlace& place) {
  SavedToken token;
  token.logprob = either(value, place);
  if (const OrderedJson* id = member(value, "id")) token.id = token_id_of(*id, place);
  if (const OrderedJson* text = member(value, "token"); text != nullptr && text->is_string())
    token.text = text->get<std::string>();
  constexpr std::string_view kAsId = "token_id:";
  if (!token.id && token.text.starts_with(kAsId))
    token.id = token_id_of_text(std::string_view(token.text).substr(kAsId.size()));
  if (const OrderedJson* bytes = list_member(value, "bytes")) {
    token.text.clear();
    for (const OrderedJson& byte : *bytes) {
      if (!byte.is_number_unsigned() || byte.get<std::uint64_t>() > 255)
        throw place.error("a token's bytes are no numbers from 0 to 255");
      token.text += static_cast<char>(byte.get<std::uint8_t>());
    }
  }
  return token;
}

}  // namespace

std::vector<SavedToken> listed_tokens(const OrderedJson& list, const ResponsePlace& place) {
  std::vector<SavedToken> tokens;
  for (const OrderedJson& value : list) {
    SavedToken token = listed(value, place);
    token.generated = true;
    for (const char* key : {"top_logprobs", "top_probs"}) {
      const OrderedJson* top = list_member(value, key);
      for (std::size_t i = 0; top != nullptr && i < top->size(); ++i) {
        SavedToken candidate = listed((*top)[i], place);
        if (candidate.logprob) token.top.push_back({candidate.id, candidate.text, *candidate.logprob});
      }
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

bool read_llama_server(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved) {
  const OrderedJson* list = list_member(response, "completion_probabilities");
  if (list == nullptr) return false;
  SavedText text;
  text.name = place.name;
  text.tokens = listed_tokens(*list, place);
  if (const OrderedJson* count = member(response, "tokens_evaluated");
      count != nullptr && count->is_number_unsigned())
    text.unknown_before = count->get<std::uint64_t>();
  if (const OrderedJson* prompt = member(response, "prompt"); prompt != nullptr && prompt->is_string())
    text.prompt_text = prompt->get<std::string>();
  for (const OrderedJson& token : *list) saved.processed |= member(token, "prob") != nullptr;
  saved.texts.push_back(std::move(text));
  saved.format = ResponseFormat::llama_server;
  return true;
}

}  // namespace assay::logprobs
