// vLLM. Offline, a RequestOutput as a script dumps it:
//
//   {"prompt_token_ids": [1, 5], "prompt_logprobs": [null, {"5": {"logprob": -0.1, "rank": 1, "decoded_token": "a"}}],
//    "outputs": [{"token_ids": [7], "logprobs": [{"7": {…}}]}]}
//
// and its server's answers, which are OpenAI's (openai.cpp) with `prompt_logprobs` added. Of several candidates the
// prompt's own token is written first, then the likeliest ones (vllm/v1/engine/logprobs.py).
#include <fmt/format.h>

#include "core/formats/logprobs/response_json.h"

namespace assay::logprobs {
namespace {

SavedCandidate candidate_of(const std::string& key, const OrderedJson& value, const ResponsePlace& place,
                            std::optional<std::uint64_t>& rank) {
  SavedCandidate candidate;
  candidate.id = token_id_of_text(key);
  if (!candidate.id) throw place.error(fmt::format("\"{}\" is no token's id", key.substr(0, 40)));
  const OrderedJson* logprob = value.is_number() ? &value : member(value, "logprob");
  if (logprob == nullptr) throw place.error(fmt::format("token {} has no logprob", key));
  candidate.logprob = logprob_of(*logprob, place);
  if (const OrderedJson* text = member(value, "decoded_token"); text != nullptr && text->is_string())
    candidate.text = text->get<std::string>();
  rank.reset();
  if (const OrderedJson* given = member(value, "rank"); given != nullptr && given->is_number_unsigned())
    rank = given->get<std::uint64_t>();
  return candidate;
}

}  // namespace

SavedToken vllm_token(const OrderedJson& candidates, std::optional<std::uint32_t> id,
                      const ResponsePlace& place) {
  SavedToken token;
  token.id = id;
  if (candidates.is_null()) return token;
  if (!candidates.is_object()) throw place.error("a token's candidates are no object of ids");
  for (const auto& [key, value] : candidates.get_ref<const OrderedJson::object_t&>()) {
    std::optional<std::uint64_t> rank;
    SavedCandidate candidate = candidate_of(key, value, place, rank);
    if (!token.id) token.id = candidate.id;
    if (candidate.id == token.id) {
      token.logprob = candidate.logprob;
      token.rank = rank;
      token.text = candidate.text;
    }
    token.top.push_back(std::move(candidate));
  }
  return token;
}

std::vector<SavedToken> vllm_prompt(const OrderedJson& list, const std::vector<std::uint32_t>& ids,
                                    const ResponsePlace& place) {
  if (!ids.empty() && ids.size() != list.size())
    throw place.error(fmt::format("{} prompt_logprobs of {} prompt_token_ids", list.size(), ids.size()));
  std::vector<SavedToken> tokens;
  for (std::size_t i = 0; i < list.size(); ++i)
    tokens.push_back(vllm_token(list[i], ids.empty() ? std::nullopt : std::optional(ids[i]), place));
  return tokens;
}

bool read_vllm(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved) {
  const OrderedJson* outputs = list_member(response, "outputs");
  const OrderedJson* prompt = list_member(response, "prompt_logprobs");
  if (member(response, "choices") != nullptr || (outputs == nullptr && prompt == nullptr)) return false;
  const OrderedJson* ids = list_member(response, "prompt_token_ids");
  const std::vector<std::uint32_t> prompt_ids =
      ids == nullptr ? std::vector<std::uint32_t>() : token_ids_of(*ids, place);
  SavedText text;
  text.name = place.name;
  if (prompt != nullptr) {
    text.tokens = vllm_prompt(*prompt, prompt_ids, place);
  } else {
    for (const std::uint32_t id : prompt_ids) text.tokens.push_back(bare_token(id));
    text.unknown_before = prompt_ids.empty() ? 1 : 0;  // some, at least
  }
  const std::size_t outputs_count = outputs == nullptr ? 0 : outputs->size();
  for (std::size_t i = 0; i < outputs_count; ++i) {
    SavedText whole = text;
    if (outputs_count > 1) whole.name += fmt::format(", output {}", i);
    const OrderedJson* own = list_member((*outputs)[i], "token_ids");
    const OrderedJson* said = list_member((*outputs)[i], "logprobs");
    for (std::size_t t = 0; said != nullptr && t < said->size(); ++t) {
      std::optional<std::uint32_t> id;
      if (own != nullptr && t < own->size()) id = token_id_of((*own)[t], place);
      whole.tokens.push_back(vllm_token((*said)[t], id, place));
      whole.tokens.back().generated = true;
    }
    saved.texts.push_back(std::move(whole));
  }
  if (outputs_count == 0) saved.texts.push_back(std::move(text));
  saved.format = ResponseFormat::vllm;
  return true;
}

}  // namespace assay::logprobs
