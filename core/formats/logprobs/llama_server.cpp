// llama-server's /completion with n_probs:
//
//   {"prompt": "<s>Once", "tokens_evaluated": 2, "completion_probabilities":
//     [{"id": 7, "token": " b", "bytes": [32, 98], "logprob": -0.2, "top_logprobs": [{"id": …}, …]}]}
//
// With post_sampling_probs it is `prob` and `top_probs`, after temperature and samplers
// (llama.cpp, tools/server/server-task.cpp). Of the prompt it has no probabilities, nor of tokens that end within a
// character (process_token in server-context.cpp): with return_tokens their ids stand in `tokens`, without it only their number is known.
#include <fmt/format.h>

#include <algorithm>
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

bool beyond_ascii(const SavedToken& token) {
  return std::any_of(token.text.begin(), token.text.end(),
                     [](char c) { return static_cast<unsigned char>(c) > 127; });
}

// Of each of `told` its place among all ids, the first that it may have and the last; the same where there is one way only.
// Empty: they are not among them in this order.
std::vector<std::pair<std::size_t, std::size_t>> places_among(const std::vector<std::uint32_t>& ids,
                                                              const std::vector<SavedToken>& told) {
  std::vector<std::pair<std::size_t, std::size_t>> places(told.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < told.size(); ++i, ++at) {
    while (at < ids.size() && told[i].id != ids[at]) ++at;
    if (at == ids.size()) return {};
    places[i].first = at;
  }
  at = ids.size();
  for (std::size_t i = told.size(); i-- > 0;) {
    do --at;  // no further than to the first
    while (told[i].id != ids[at]);
    places[i].second = at;
  }
  return places;
}

constexpr std::size_t kMostWithinCharacter = 3;  // tokens, of one byte each, before a character's last byte

// Those that were told where they stand among all that were written. One that is told behind others that were not has the bytes of
// the whole character, and so a byte that is no ASCII, and there are no more of them than such a character has bytes: what is left
// out otherwise was left out for no such reason.
std::vector<SavedToken> among_all(const std::vector<std::uint32_t>& ids, std::vector<SavedToken> told) {
  const auto places = places_among(ids, told);
  if (told.size() >= ids.size() || places.size() != told.size()) return told;
  std::vector<SavedToken> all;
  for (const std::uint32_t id : ids) {
    all.push_back(bare_token(id));
    all.back().generated = true;
  }
  std::size_t from = 0;
  for (std::size_t i = 0; i <= told.size(); ++i) {
    const std::size_t at = i < told.size() ? places[i].second : ids.size();
    const bool split = (i == told.size() || beyond_ascii(told[i])) && at - from <= kMostWithinCharacter;
    for (std::size_t k = from; k < at; ++k) all[k].within_character = split;
    if (i == told.size()) break;
    if (places[i].first == at) {
      if (at > from) told[i].text.clear();  // its own bytes are not told
      all[at] = std::move(told[i]);
    } else {
      all[at].within_character = split;  // of which of several equal ones the value is, nobody knows
    }
    from = at + 1;
  }
  return all;
}

// More were written than are told, and not at the end: the tokens behind the first that is left out would be taken for others.
bool leaves_out_some(const OrderedJson& response, const std::vector<SavedToken>& told) {
  const OrderedJson* written = member(response, "tokens_predicted");
  return written != nullptr && written->is_number_unsigned() && written->get<std::uint64_t>() > told.size() &&
         std::any_of(told.begin(), told.end(), beyond_ascii);
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
  const OrderedJson* all = list_member(response, "tokens");
  const bool none_told =
      list == nullptr && member(response, "tokens_evaluated") != nullptr && all != nullptr && !all->empty();
  if (list == nullptr && !none_told) return false;
  SavedText text;
  text.name = place.name;
  if (list != nullptr) text.tokens = listed_tokens(*list, place);
  if (all != nullptr && !all->empty())
    text.tokens = among_all(token_ids_of(*all, place), std::move(text.tokens));
  else if (leaves_out_some(response, text.tokens))
    throw place.error("tells fewer tokens than it wrote: not those that end within a character")
        .remedy("ask for \"return_tokens\": true, too");
  if (const OrderedJson* count = member(response, "tokens_evaluated");
      count != nullptr && count->is_number_unsigned())
    text.unknown_before = count->get<std::uint64_t>();
  if (const OrderedJson* prompt = member(response, "prompt"); prompt != nullptr && prompt->is_string())
    text.prompt_text = prompt->get<std::string>();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i)
    saved.processed |= member((*list)[i], "prob") != nullptr;
  saved.texts.push_back(std::move(text));
  saved.format = ResponseFormat::llama_server;
  return true;
}

}  // namespace assay::logprobs
