#include "kernels/logprobs/ask_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/sampling/keyed_random.h"

namespace assay::logprobs {
namespace {

constexpr int kCandidates = 4;

Json openai_request(const std::string& model, const EndpointPrompt& prompt, std::size_t made) {
  Json body = {{"prompt", prompt.ids},
               {"max_tokens", made},
               {"temperature", 0},
               {"return_token_ids", true},
               {"return_tokens_as_token_ids", true}};
  if (!model.empty()) body["model"] = model;
  return body;
}

std::string echo_body(const std::string& model, const EndpointPrompt& prompt, std::size_t made,
                      const std::string&) {
  Json body = openai_request(model, prompt, made);
  body["echo"] = true;
  body["logprobs"] = kCandidates;
  return dump_json(body, -1);
}

std::string prompt_logprobs_body(const std::string& model, const EndpointPrompt& prompt, std::size_t made,
                                 const std::string&) {
  Json body = openai_request(model, prompt, made);
  body["logprobs"] = kCandidates;
  body["prompt_logprobs"] = kCandidates;
  return dump_json(body, -1);
}

std::string sglang_body(const std::string&, const EndpointPrompt& prompt, std::size_t made,
                        const std::string&) {
  return dump_json(Json{{"input_ids", prompt.ids},
                        {"sampling_params", {{"max_new_tokens", made}, {"temperature", 0}}},
                        {"return_logprob", true},
                        {"logprob_start_len", 0},
                        {"top_logprobs_num", kCandidates}},
                   -1);
}

// Nothing of the prompt is taken from a cache, where the server lets itself be told.
std::string llama_server_body(const std::string&, const EndpointPrompt& prompt, std::size_t made,
                              const std::string&) {
  return dump_json(Json{{"prompt", prompt.ids},
                        {"n_predict", made},
                        {"n_probs", kCandidates},
                        {"temperature", 0},
                        {"return_tokens", true},
                        {"cache_prompt", false}},
                   -1);
}

std::string generated_body(const std::string& model, const EndpointPrompt& prompt, std::size_t made,
                           const std::string&) {
  Json body = openai_request(model, prompt, made);
  body["logprobs"] = kCandidates;
  return dump_json(body, -1);
}

// Blocks of other runs are not found under a salt of this one; those of its own first answers are, when it asks again.
std::string salted_body(const std::string& model, const EndpointPrompt& prompt, std::size_t made,
                        const std::string& salt) {
  Json body = openai_request(model, prompt, made);
  body["logprobs"] = kCandidates;
  body["cache_salt"] = salt;
  return dump_json(body, -1);
}

// Those that score prompts first.
constexpr std::array<AskingWay, 6> kWays = {
    {{"echo of completions", "/v1/completions", true, true, echo_body},
     {"vLLM's prompt_logprobs", "/v1/completions", true, true, prompt_logprobs_body},
     {"SGLang's /generate", "/generate", true, true, sglang_body},
     {"llama-server's /completion, what it writes alone", "/completion", false, true, llama_server_body},
     {"completions, what it writes alone, with a cache_salt", "/v1/completions", false, true, salted_body},
     {"completions, what it writes alone", "/v1/completions", false, false, generated_body}}};

std::string made_salt() {
  std::random_device random;
  return fmt::format("assay-{:08x}{:08x}", random(), random());
}

// OpenAI's usage.prompt_tokens_details.cached_tokens, of an answer that tells it.
bool tells_no_cached(const std::string& body) {
  const nlohmann::json answer = nlohmann::json::parse(body, nullptr, false);
  const nlohmann::json::json_pointer cached("/usage/prompt_tokens_details/cached_tokens");
  return answer.is_object() && answer.contains(cached) && answer[cached] == 0;
}

std::size_t scored(const SavedText& text, std::size_t from) {
  std::size_t count = 0;
  for (std::size_t i = from; i < text.tokens.size(); ++i) count += text.tokens[i].logprob ? 1 : 0;
  return count;
}

// Names stand for several tokens where they are no whole characters: what is likelier than a token cannot be counted by them. SGLang's
// echo has names alone, its /generate has ids.
bool candidates_have_ids(const SavedText& text) {
  return std::all_of(text.tokens.begin(), text.tokens.end(), [](const SavedToken& token) {
    return std::all_of(token.top.begin(), token.top.end(),
                       [](const SavedCandidate& candidate) { return candidate.id.has_value(); });
  });
}

std::size_t within_characters(const SavedText& text) {
  return static_cast<std::size_t>(std::count_if(text.tokens.begin(), text.tokens.end(),
                                                [](const SavedToken& t) { return t.within_character; }));
}

std::vector<TokenId> drawn(std::size_t count, std::size_t vocabulary, std::uint64_t seed,
                           std::uint32_t which) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < count; ++i)
    ids.push_back(static_cast<TokenId>(keyed_uniform({.seed = seed, .sample = which}, i) *
                                       static_cast<double>(vocabulary)));
  return ids;
}

constexpr const char* kShort = "The";
constexpr const char* kSentence =
    "Whoever downloads a model wants to know that its weights are those which were published, and whoever "
    "serves one, that "
    "what it says is what those weights say. ";
constexpr const char* kLanguages =
    "Der Fluss ist tief. La rivière est profonde. El río es hondo. Река глубока. 河很深。川は深い。강은 "
    "깊다. النهر عميق. नदी गहरी है। "
    "🦊🌲 x = \"a\\n\"; if (x != y) { return 3.14e-2; }";

// Which token of the prompt is known to be another one; empty: none.
std::string other_token(const SavedText& text, const EndpointPrompt& prompt) {
  for (std::size_t i = 0; i < prompt.ids.size(); ++i)
    if (const auto& id = text.tokens[i].id; id && *id != prompt.ids[i])
      return fmt::format("the server made other tokens of the prompt \"{}\": {} in place of {} at {}",
                         prompt.name, *id, prompt.ids[i], i);
  return "";
}

}  // namespace

std::vector<EndpointPrompt> built_in_prompts(const Encode& encode, std::size_t vocabulary,
                                             std::size_t longest, std::uint64_t seed) {
  std::vector<EndpointPrompt> prompts;
  const auto add = [&](std::string name, std::vector<TokenId> ids) {
    if (ids.size() > longest) ids.resize(longest);
    if (ids.size() >= 2) prompts.push_back({std::move(name), std::move(ids)});
  };
  if (encode) {
    std::string sentences, repeated;
    for (int i = 0; i < 8; ++i) sentences += kSentence + std::to_string(i) + ": ";
    for (int i = 0; i < 40; ++i) repeated += " again";
    add("short", encode(std::string(kShort) + " river"));
    add("long", encode(sentences));
    add("repeated", encode(repeated));
    add("languages", encode(kLanguages));
  }
  std::uint32_t which = 1;
  for (const std::size_t count : {2U, 15U, 16U, 17U, 63U, 64U, 65U, 129U})
    if (count <= longest) add(fmt::format("{} tokens drawn", count), drawn(count, vocabulary, seed, which++));
  return prompts;
}

EndpointAsker::EndpointAsker(Connect connect, std::string model, const EndpointPrompt& first)
    : connect_(std::move(connect)), model_(std::move(model)), salt_(made_salt()) {
  EndpointClient client = connect_();
  const ServedModel served = served_model(client, model_);
  model_ = served.name;
  const AskingWay* by_names = nullptr;
  for (const AskingWay& way : kWays) {
    if (by_names != nullptr && !way.scores_prompts) break;
    way_ = &way;
    const HttpAnswer answer = client.post(way.route, way.body(model_, first, 2, salt_ + "-first"));
    if (answer.status == 0) throw Error::io("the server does not answer: " + answer.failure);
    require_key(answer);
    try {
      const SavedText text = text_of(answer, first);
      if (scored(text, way.scores_prompts ? 1 : first.ids.size()) + within_characters(text) >=
          (way.scores_prompts ? first.ids.size() - 1 : 1)) {
        refusal_.clear();
        if (!way.scores_prompts || candidates_have_ids(text)) return;
        if (by_names == nullptr) by_names = &way;
        continue;
      }
      refusal_ = "no log-probabilities came";
    } catch (const Error& error) {
      refusal_ = error.message();
    }
  }
  if (by_names == nullptr) {
    require_served(served);
    return;
  }
  way_ = by_names;
  refusal_.clear();
}

SavedText EndpointAsker::text_of(const HttpAnswer& answer, const EndpointPrompt& prompt) {
  if (!answer.ok()) throw Error::input("the server: " + answer.why());
  SavedResponses saved = parse_responses(answer.body, "the server's answer");
  SavedText text = std::move(saved.texts.front());
  text.name = prompt.name;
  const bool whole =
      text.unknown_before == 0 && text.tokens.size() >= prompt.ids.size() && !text.tokens.front().generated;
  if (!whole) {  // what it wrote alone: its prompt is known
    std::vector<SavedToken> before(prompt.ids.size());
    text.tokens.insert(text.tokens.begin(), before.begin(), before.end());
    text.unknown_before = 0;
    text.prompt_text.reset();
  }
  return text;
}

EndpointAsker::Answers EndpointAsker::ask(const std::vector<EndpointPrompt>& prompts, std::size_t made,
                                          bool at_once) const {
  Answers all;
  all.saved.texts.resize(prompts.size());
  std::vector<std::string> wrong(prompts.size());
  std::vector<char> uncached(prompts.size());
  const auto ask_one = [&](EndpointClient& client, std::size_t i) {
    try {
      const HttpAnswer answer = client.post(way_->route, way_->body(model_, prompts[i], made, salt_));
      all.saved.texts[i] = text_of(answer, prompts[i]);
      uncached[i] = way_->excludes_cache || tells_no_cached(answer.body) ? 1 : 0;
    } catch (const Error& error) {
      wrong[i] = error.message();
    }
  };
  if (at_once) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < prompts.size(); ++i)
      threads.emplace_back([&, i] {
        EndpointClient client = connect_();
        ask_one(client, i);
      });
  } else {
    EndpointClient client = connect_();
    for (std::size_t i = 0; i < prompts.size() && !interrupted(); ++i) ask_one(client, i);
  }
  for (std::size_t i = 0; i < prompts.size() && !interrupted(); ++i) {
    if (!wrong[i].empty()) throw Error::input(fmt::format("prompt \"{}\": {}", prompts[i].name, wrong[i]));
    SavedText& text = all.saved.texts[i];
    if (all.other_tokens.empty()) all.other_tokens = other_token(text, prompts[i]);
    for (std::size_t t = 0; t < prompts[i].ids.size(); ++t) text.tokens[t].id = prompts[i].ids[t];
    const std::size_t from = way_->scores_prompts ? 1 : prompts[i].ids.size();
    const std::size_t within = within_characters(text);
    all.within_characters += within;
    all.missing += text.tokens.size() - from - scored(text, from) - within;
    all.cache_excluded = all.cache_excluded && uncached[i] != 0;
  }
  return all;
}

}  // namespace assay::logprobs
