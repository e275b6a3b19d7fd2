// What the readers of JSON responses share: members by name, numbers that are probabilities, the place that an error names.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/logprobs/saved.h"
#include "core/formats/ordered_json.h"
#include "core/system/error.h"

namespace assay::logprobs {

// One response, and where it stands, for errors.
struct ResponsePlace {
  std::filesystem::path file;
  std::string name;  // "0", "line 7, choice 1"
  Error error(std::string what) const;
};

// nullptr where there is none, or null, or `value` is no object.
const OrderedJson* member(const OrderedJson& value, std::string_view key);
const OrderedJson* list_member(const OrderedJson& value, std::string_view key);  // an array, or nullptr

// A saved log-probability. Numbers no engine can mean are errors: NaN, above 0 by more than rounding. What stands for
// minus infinity (-9999 and below, the lowest float) becomes it.
double checked_logprob(double value, const ResponsePlace& place);
double logprob_of(const OrderedJson& value, const ResponsePlace& place);
std::optional<double> logprob_or_null(const OrderedJson& value, const ResponsePlace& place);
std::uint32_t token_id_of(const OrderedJson& value, const ResponsePlace& place);
std::optional<std::uint32_t> token_id_of_text(std::string_view digits);
std::vector<std::uint32_t> token_ids_of(const OrderedJson& list, const ResponsePlace& place);

// Tokens of which only the ids are known, before or among `tokens`.
SavedToken bare_token(std::uint32_t id);

// One reader a kind of response: true where `response` is of its kind, its texts appended to `saved`.
using ResponseReader = bool (*)(const OrderedJson& response, const ResponsePlace& place,
                                SavedResponses& saved);
bool read_vllm(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved);
bool read_sglang(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved);
bool read_llama_server(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved);
bool read_openai(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved);
bool read_plain_object(const OrderedJson& response, const ResponsePlace& place, SavedResponses& saved);

// Parts that several kinds hold.
// {"5": {"logprob": -0.1, "rank": 1, "decoded_token": "a"}, …}, or null: the token is `id`, else the first of them.
SavedToken vllm_token(const OrderedJson& candidates, std::optional<std::uint32_t> id,
                      const ResponsePlace& place);
std::vector<SavedToken> vllm_prompt(const OrderedJson& list, const std::vector<std::uint32_t>& ids,
                                    const ResponsePlace& place);
// [{"id", "token", "bytes", "logprob", "top_logprobs"}, …], as in a chat's logprobs.content and in llama-server.
std::vector<SavedToken> listed_tokens(const OrderedJson& list, const ResponsePlace& place);

SavedResponses parse_perplexity_base(std::string_view bytes, const std::filesystem::path& source);
SavedResponses parse_csv(std::string_view text, const std::filesystem::path& source);
bool is_perplexity_base(std::string_view bytes);

}  // namespace assay::logprobs
