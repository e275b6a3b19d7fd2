// SGLang's /generate with return_logprob:
//
//   {"text": "…", "meta_info": {"prompt_tokens": 2, "input_token_logprobs": [[null, 1, null], [-0.1, 5, "a"]],
//    "output_token_logprobs": [[-0.2, 7, "b"]], "input_top_logprobs": [null, [[-0.1, 5, "a"], …]],
//    "output_top_logprobs": […]}}
//
// input_token_logprobs begin at logprob_start_len, which may be behind the prompt (docs/basic_usage/native_api).
#include <fmt/format.h>

#include "core/formats/logprobs/response_json.h"

namespace assay::logprobs {
namespace {

// [logprob or null, id, text or null]
SavedToken triple(const OrderedJson& value, const ResponsePlace& place) {
  if (!value.is_array() || value.size() < 2)
    throw place.error("a token is no [logprob, id, text] as SGLang writes it");
  SavedToken token;
  token.logprob = logprob_or_null(value[0], place);
  token.id = token_id_of(value[1], place);
  if (value.size() > 2 && value[2].is_string()) token.text = value[2].get<std::string>();
  return token;
}

void append_triples(const OrderedJson& meta, const std::string& kind, bool generated,
                    const ResponsePlace& place, std::vector<SavedToken>& tokens) {
  const OrderedJson* own = list_member(meta, kind + "_token_logprobs");
  const OrderedJson* top = list_member(meta, kind + "_top_logprobs");
  for (std::size_t i = 0; own != nullptr && i < own->size(); ++i) {
    SavedToken token = triple((*own)[i], place);
    token.generated = generated;
    if (top != nullptr && i < top->size() && (*top)[i].is_array()) {
      for (const OrderedJson& one : (*top)[i]) {
        const SavedToken candidate = triple(one, place);
        if (candidate.logprob) token.top.push_back({candidate.id, candidate.text, *candidate.logprob});
      }
    }
    tokens.push_back(std::move(token));
  }
}

}  // namespace

bool read_sglang(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved) {
  const OrderedJson* meta = member(response, "meta_info");
  if (meta == nullptr || !meta->is_object()) return false;
  SavedText text;
  text.name = place.name;
  append_triples(*meta, "input", false, place, text.tokens);
  if (const OrderedJson* count = member(*meta, "prompt_tokens");
      count != nullptr && count->is_number_unsigned() && count->get<std::uint64_t>() > text.tokens.size())
    text.unknown_before = count->get<std::uint64_t>() - text.tokens.size();
  append_triples(*meta, "output", true, place, text.tokens);
  saved.texts.push_back(std::move(text));
  saved.format = ResponseFormat::sglang;
  return true;
}

}  // namespace assay::logprobs
