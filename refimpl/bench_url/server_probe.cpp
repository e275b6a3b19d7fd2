#include "refimpl/bench_url/server_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "refimpl/bench_url/answer_stream.h"

namespace assay {
namespace {

// Words that most vocabularies have whole, a blank before them.
constexpr std::array<const char*, 48> kWords = {
    "the",  "of",  "and",  "to",  "in",   "a",    "is",   "that", "for", "it",    "was",   "on",
    "with", "as",  "be",   "at",  "by",   "he",   "had",  "not",  "are", "but",   "from",  "or",
    "have", "an",  "they", "one", "you",  "were", "her",  "all",  "she", "there", "would", "their",
    "we",   "him", "been", "has", "when", "who",  "will", "more", "no",  "if",    "out",   "so"};
constexpr std::size_t kWordsWanted = 16, kRepeats = 4;
// Past special tokens and single bytes, within every vocabulary of a real model.
constexpr std::pair<TokenNumber, TokenNumber> kUsualIds = {300, 1300};
constexpr std::size_t kProbeTokens = 2;

class ServerProbe {
 public:
  ServerProbe(EndpointClient& client, const ProbeWishes& wishes) : client_(client), wishes_(wishes) {
    traits_.shape.kind = wishes.kind;
    traits_.shape.temperature = wishes.temperature;
    traits_.shape.log_probabilities = wishes.log_probabilities;
  }

  ServerTraits prompts() {
    find_model();
    find_pool();
    return std::move(traits_);
  }

  ServerTraits run() {
    find_model();
    find_pool();
    find_stream_words();
    return std::move(traits_);
  }

 private:
  void find_model() {
    model_ = served_model(client_, wishes_.model);
    traits_.shape.model = model_.name;
    traits_.context = model_.context ? model_.context : context_of_slots();
  }

  // llama-server's, for each of those that it serves at once. Others may answer with a page.
  std::optional<std::size_t> context_of_slots() {
    const HttpAnswer answer = client_.get("/props");
    if (!answer.ok()) return std::nullopt;
    try {
      const ParsedJson document = parse_json(answer.body, "/props");
      const ParsedJson& context = document.at("default_generation_settings").at("n_ctx");
      return context.is_number_unsigned() ? std::optional(context.get<std::size_t>()) : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;
    } catch (const ParsedJson::exception&) {
      return std::nullopt;
    }
  }

  // ---- what prompts are made of

  void find_pool() {
    const bool ids_possible = wishes_.kind == EndpointKind::completions;
    if (wishes_.form == PromptForm::ids && !ids_possible)
      throw Error::usage("prompts of token ids go with /v1/completions alone");
    if (wishes_.form != PromptForm::text && ids_possible) {
      traits_.pool.ids = candidate_ids();
      const std::string why = refused_ids();
      if (why.empty()) return;
      if (wishes_.form == PromptForm::ids)
        throw Error::input("prompts of token ids: " + why)
            .remedy("name ids of the vocabulary with --token-ids");
      traits_.pool.ids.clear();
    }
    find_words();
  }

  std::vector<TokenNumber> candidate_ids() {
    if (wishes_.ids) return range(*wishes_.ids);
    std::string text;
    for (const char* word : kWords) text += fmt::format("{} ", word);
    for (const char* field : {"prompt", "content"}) {  // vLLM's word, llama-server's
      const HttpAnswer answer = client_.post("/tokenize", dump_json(Json{{field, text}}, -1));
      std::vector<TokenNumber> ids = answer.ok() ? ids_in(answer.body) : std::vector<TokenNumber>();
      if (ids.size() >= 2) return ids;
    }
    return range(kUsualIds);
  }

  static std::vector<TokenNumber> range(std::pair<TokenNumber, TokenNumber> ends) {
    std::vector<TokenNumber> ids;
    for (TokenNumber id = ends.first; id <= ends.second; ++id) ids.push_back(id);
    return ids;
  }

  // Each once, without the first, which may be that of a text's beginning.
  static std::vector<TokenNumber> ids_in(const std::string& body) {
    const ParsedJson document = parse_json(body, "/tokenize");
    if (!document.is_object() || !document.contains("tokens") || !document["tokens"].is_array()) return {};
    std::set<TokenNumber> ids;
    const ParsedJson& tokens = document["tokens"];
    for (std::size_t i = 1; i < tokens.size(); ++i)
      if (tokens[i].is_number_unsigned()) ids.insert(tokens[i].get<TokenNumber>());
    return {ids.begin(), ids.end()};
  }

  std::string refused_ids() {
    std::vector<TokenNumber> few(traits_.pool.ids.begin(),
                                 traits_.pool.ids.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                                                64, traits_.pool.ids.size())));
    few.push_back(traits_.pool.ids.back());
    const HttpAnswer answer = client_.post(route(), request_body(traits_.shape, few, 1, false));
    require_key(answer);
    if (!answer.ok()) return answer.why();
    const auto usage = usage_of_answer(answer.body);
    if (!usage) return "the server does not tell usage";
    if (usage->prompt_tokens == few.size()) return "";
    return fmt::format("the server counts {} in a prompt of {}", usage->prompt_tokens, few.size());
  }

  void find_words() {
    traits_.pool.first_word = "The";
    traits_.pool.overhead = tokens_of("The");
    for (const char* word : kWords) {
      if (traits_.pool.words.size() == kWordsWanted) return;
      std::string text = "The";
      for (std::size_t i = 0; i < kRepeats; ++i) text += fmt::format(" {}", word);
      if (tokens_of(text) == traits_.pool.overhead + kRepeats) traits_.pool.words.emplace_back(word);
    }
    if (traits_.pool.words.size() < 2)
      throw Error::input("no words were found that cost one token each, by the usage that the server tells")
          .remedy("use --prompt-as ids where it takes token ids");
  }

  std::size_t tokens_of(const std::string& text) {
    const HttpAnswer answer = client_.post(route(), request_body(traits_.shape, text, 1, false));
    if (answer.status == 0) throw Error::io("the server does not answer: " + answer.failure);
    require_key(answer);
    if (!answer.ok()) require_served(model_);
    if (!answer.ok()) throw Error::input("the server refuses a plain request: " + answer.why());
    const auto usage = usage_of_answer(answer.body);
    if (!usage)
      throw Error::input("the server does not tell usage: the length of a prompt cannot be confirmed")
          .remedy("use --prompt-as ids where it takes token ids");
    return usage->prompt_tokens;
  }

  // ---- what is asked beside them

  void find_stream_words() {
    RequestShape& shape = traits_.shape;
    if (!streams(shape).ok()) throw Error::input("the server does not stream: " + streams(shape).why());
    for (bool RequestShape::*word :
         {&RequestShape::stream_usage, &RequestShape::ignore_end, &RequestShape::token_ids}) {
      RequestShape wider = shape;
      wider.*word = true;
      if (streams(wider).ok()) shape = wider;
    }
    if (tells_tokens(shape)) {
      traits_.counted_by = shape.log_probabilities ? "logprobs or token_ids" : "token_ids";
      return;
    }
    shape.token_ids = false;
    RequestShape wider = shape;
    wider.continuous_usage = shape.stream_usage;
    if (wider.continuous_usage && tells_tokens(wider)) {
      shape = wider;
      traits_.counted_by = "usage beside every chunk";
    }
  }

  PromptSent short_prompt() const {
    if (traits_.pool.ids.empty()) return traits_.pool.first_word;
    return std::vector<TokenNumber>{traits_.pool.ids.front()};
  }

  HttpAnswer streams(const RequestShape& shape, RequestRecord* record = nullptr) {
    RequestRecord unused;
    AnswerStream stream(record != nullptr ? *record : unused);
    HttpAnswer answer = client_.post(route(), request_body(shape, short_prompt(), kProbeTokens, true),
                                     [&](std::string_view bytes) { return stream.push(bytes, 0); });
    stream.finish(answer.ok() ? "" : answer.why(), 0);
    return answer;
  }

  bool tells_tokens(const RequestShape& shape) {
    RequestRecord record;
    return streams(shape, &record).ok() && record.told_by_chunks().value_or(0) > 0;
  }

  std::string_view route() const { return route_of(wishes_.kind); }

  EndpointClient& client_;
  const ProbeWishes& wishes_;
  ServedModel model_;
  ServerTraits traits_;
};

}  // namespace

ServerTraits probe_server(EndpointClient& client, const ProbeWishes& wishes) {
  return ServerProbe(client, wishes).run();
}

ServerTraits probe_prompts(EndpointClient& client, const ProbeWishes& wishes) {
  return ServerProbe(client, wishes).prompts();
}

}  // namespace assay
