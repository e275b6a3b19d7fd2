// /v1/completions of the program as it runs: what it says is what `assay run` says, however it is asked.
#include "tests/refimpl/serve/served_program.h"

namespace assay {
namespace {

using test::Document;
using test::ServedProgram;

fs::path tinylm() {
  return test::source_dir() / "data/tinylm";
}

const ServedProgram& server() {
  static const ServedProgram program(tinylm());
  return program;
}

// What `assay run` says, with the same kernels.
Document by_run(std::vector<std::string> options) {
  std::vector<std::string> arguments = {"run",           tinylm().string(), "--kernels",
                                        "cpu-invariant", "--json",          "-"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const test::ProcessResult result = test::assay(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Document::parse(result.out);
}

std::string text_of(const Document& answer, std::size_t choice = 0) {
  return answer["choices"][choice]["text"];
}

std::string streamed_text(Document request, std::size_t choice = 0) {
  request["stream"] = true;
  const auto answer = server().post("/v1/completions", request.dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  std::string text;
  for (const Document& event : test::events_of(answer.body))
    for (const Document& each : event["choices"])
      if (each["index"] == choice) text += each["text"].get<std::string>();
  return text;
}

TEST(Completions, TheTextIsThatOfRun) {
  const Document greedy = by_run({"-p", "The river", "-n", "24"});
  const Document said = server().complete(
      {{"prompt", "The river"}, {"max_tokens", 24}, {"temperature", 0}, {"return_token_ids", true}});
  EXPECT_EQ(text_of(said), greedy["text"]);
  EXPECT_EQ(said["choices"][0]["token_ids"], greedy["ids"]);
  EXPECT_EQ(said["usage"]["completion_tokens"], greedy["ids"].size());
  for (const std::string seed : {"0", "7", "18446744073709551615"}) {
    const Document drawn = by_run({"-p", "The river", "-n", "24", "--temperature", "0.9", "--top-p", "0.95",
                                   "--top-k", "50", "--min-p", "0.01", "--presence-penalty", "0.5",
                                   "--frequency-penalty", "0.25", "--seed", seed});
    EXPECT_EQ(text_of(server().complete({{"prompt", "The river"},
                                         {"max_tokens", 24},
                                         {"temperature", 0.9},
                                         {"top_p", 0.95},
                                         {"top_k", 50},
                                         {"min_p", 0.01},
                                         {"presence_penalty", 0.5},
                                         {"frequency_penalty", 0.25},
                                         {"seed", std::stoull(seed)}})),
              drawn["text"])
        << seed;
  }
}

TEST(Completions, EveryFormOfPromptIsTheSame) {
  const Document tokens = by_run({"-p", "A small house", "-n", "1"})["sequences"][0]["prompt_ids"];
  const Document rest = {{"max_tokens", 10}, {"seed", 3}};
  const auto with = [&](const Document& prompt) {
    Document request = rest;
    request["prompt"] = prompt;
    return server().complete(request);
  };
  const std::string text = text_of(with("A small house"));
  EXPECT_EQ(text_of(with(tokens)), text);
  const Document several = with(Document::array({"The river", "A small house"}));
  EXPECT_EQ(text_of(several, 1), text);
  EXPECT_EQ(text_of(several, 0), text_of(with("The river")));
  EXPECT_EQ(text_of(with(Document::array({tokens, tokens})), 1), text);
  EXPECT_EQ(several["choices"].size(), 2);
  EXPECT_EQ(several["choices"][1]["index"], 1);
}

TEST(Completions, EchoTellsWhatThePromptWasWorth) {
  const Document run = by_run({"-p", "The river was cold", "-n", "0", "--logprobs", "2"});
  const Document& sequence = run["sequences"][0];
  const Document said = server().complete({{"prompt", "The river was cold"},
                                           {"max_tokens", 0},
                                           {"echo", true},
                                           {"logprobs", 2},
                                           {"return_tokens_as_token_ids", true}});
  EXPECT_EQ(text_of(said), "The river was cold");
  const Document& logprobs = said["choices"][0]["logprobs"];
  const std::size_t tokens = sequence["prompt_ids"].size();
  ASSERT_EQ(logprobs["tokens"].size(), tokens);
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  for (std::size_t i = 1; i < tokens; ++i) {
    const Document& expected = sequence["logprobs"][i - 1];
    EXPECT_EQ(logprobs["tokens"][i], "token_id:" + expected["id"].dump());
    EXPECT_EQ(logprobs["token_logprobs"][i], expected["logprob"]);
    for (const Document& top : expected["top"])
      EXPECT_EQ(logprobs["top_logprobs"][i]["token_id:" + top["id"].dump()], top["logprob"]);
  }
  // And behind the prompt goes on what would have been said anyway.
  const Document more = server().complete({{"prompt", "The river was cold"},
                                           {"max_tokens", 5},
                                           {"echo", true},
                                           {"logprobs", 0},
                                           {"temperature", 0}});
  const Document plain =
      server().complete({{"prompt", "The river was cold"}, {"max_tokens", 5}, {"temperature", 0}});
  EXPECT_EQ(text_of(more), "The river was cold" + text_of(plain));
  EXPECT_EQ(more["choices"][0]["logprobs"]["tokens"].size(), tokens + 5);
}

TEST(Completions, LogProbabilitiesAreThoseOfRun) {
  const Document run = by_run({"-p", "The river", "-n", "6", "--logprobs", "3"});
  const Document said = server().complete({{"prompt", "The river"},
                                           {"max_tokens", 6},
                                           {"temperature", 0},
                                           {"logprobs", 3},
                                           {"return_tokens_as_token_ids", true}});
  const Document& logprobs = said["choices"][0]["logprobs"];
  for (std::size_t i = 0; i < 6; ++i) {
    const Document& expected = run["sequences"][0]["logprobs"][i];
    EXPECT_EQ(logprobs["token_logprobs"][i], expected["logprob"]);
    EXPECT_EQ(logprobs["top_logprobs"][i].size(), 3);
    for (const Document& top : expected["top"])
      EXPECT_EQ(logprobs["top_logprobs"][i]["token_id:" + top["id"].dump()], top["logprob"]);
  }
}

TEST(Completions, SamplesHaveNumbersOfTheirOwn) {
  const Document request = {{"prompt", "Once"}, {"max_tokens", 12}, {"n", 4}, {"seed", 11}};
  const Document one = server().complete(request), two = server().complete(request);
  EXPECT_EQ(one["choices"], two["choices"]);
  EXPECT_EQ(one["choices"].size(), 4);
  EXPECT_NE(text_of(one, 0), text_of(one, 1));
  Document alone = request;
  alone["n"] = 1;
  EXPECT_EQ(text_of(server().complete(alone)), text_of(one, 0));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(streamed_text(request, i), text_of(one, i));
}

TEST(Completions, RulesOfChoiceAreObeyed) {
  const Document forced = server().complete({{"prompt", "The"},
                                             {"max_tokens", 4},
                                             {"temperature", 0},
                                             {"logit_bias", {{"77", 100}}},
                                             {"return_token_ids", true}});
  EXPECT_EQ(forced["choices"][0]["token_ids"], Document({77, 77, 77, 77}));
  EXPECT_EQ(forced["choices"][0]["finish_reason"], "length");
  const std::string text =
      text_of(server().complete({{"prompt", "The river"}, {"max_tokens", 30}, {"temperature", 0}}));
  const std::string stop = text.substr(8, 4);
  const Document stopped = server().complete(
      {{"prompt", "The river"}, {"max_tokens", 30}, {"temperature", 0}, {"stop", Document::array({stop})}});
  EXPECT_EQ(text_of(stopped), text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  const Document ended = server().complete({{"prompt", "The river"},
                                            {"max_tokens", 30},
                                            {"temperature", 0},
                                            {"logit_bias", {{"77", 100}}},
                                            {"stop_token_ids", Document::array({77})}});
  EXPECT_EQ(ended["usage"]["completion_tokens"], 1);
  EXPECT_EQ(ended["choices"][0]["finish_reason"], "stop");
}

// The vocabulary knows such characters by their bytes alone: a token is a part of one.
TEST(Completions, StreamsHaveWholeCharacters) {
  const std::string text = "é日本😀ü";
  const Document request = {{"prompt", "Say"},
                            {"max_tokens", 60},
                            {"grammar", "root ::= \"" + text + "\""},
                            {"return_token_ids", true}};
  const Document whole = server().complete(request);
  EXPECT_EQ(text_of(whole), text);
  EXPECT_GE(whole["choices"][0]["token_ids"].size(), text.size());
  EXPECT_EQ(streamed_text(request), text);
  for (std::size_t most = 1; most <= text.size(); ++most) {  // and ends between any two bytes
    Document cut = request;
    cut["max_tokens"] = most;
    const std::string said = text_of(server().complete(cut));
    EXPECT_EQ(streamed_text(cut), said) << most;
  }
}

TEST(Completions, StreamsTellUsageWhereAsked) {
  const Document request = {{"prompt", "The river"}, {"max_tokens", 5},
                            {"temperature", 0},      {"logprobs", 1},
                            {"stream", true},        {"stream_options", {{"include_usage", true}}}};
  const auto answer = server().post("/v1/completions", request.dump());
  const std::vector<Document> events = test::events_of(answer.body);
  ASSERT_GE(events.size(), 2);
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 5);
  std::size_t scored = 0;
  for (const Document& event : events)
    for (const Document& choice : event["choices"])
      if (!choice["logprobs"].is_null()) scored += choice["logprobs"]["tokens"].size();
  EXPECT_EQ(scored, 5);
  EXPECT_TRUE(events.front()["usage"].is_null());
}

TEST(Completions, FormsAreKept) {
  const Document schema = {
      {"type", "object"},
      {"properties", {{"zeta", {{"type", "boolean"}}}, {"alpha", {{"type", "boolean"}}}}},
      {"required", Document::array({"zeta", "alpha"})}};
  for (int seed = 0; seed < 5; ++seed) {
    const Document said = server().complete(
        {{"prompt", "Data:"},
         {"max_tokens", 100},
         {"seed", seed},
         {"response_format",
          {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}}}});
    EXPECT_EQ(said["choices"][0]["finish_reason"], "stop");
    const Document made = Document::parse(text_of(said), nullptr, false);
    ASSERT_TRUE(made.is_object()) << text_of(said);
    EXPECT_EQ(made.begin().key(), "zeta");
    EXPECT_TRUE(made["alpha"].is_boolean());
  }
}

// Clients of OpenAI's read its keys.
TEST(Completions, JsonModeIsOfObjects) {
  for (int seed = 0; seed < 4; ++seed) {
    const Document said = server().complete({{"prompt", "Data:"},
                                             {"max_tokens", 3},
                                             {"seed", seed},
                                             {"temperature", 1.5},
                                             {"response_format", {{"type", "json_object"}}}});
    EXPECT_TRUE(text_of(said).starts_with('{')) << text_of(said);
  }
}

// What nobody can go on with ends one text, and no other.
TEST(Completions, ATextThatCannotGoOnEndsAlone) {
  const std::string before =
      text_of(server().complete({{"prompt", "The river"}, {"max_tokens", 40}, {"temperature", 0}}));
  std::thread other([&] {
    EXPECT_EQ(text_of(server().complete({{"prompt", "The river"}, {"max_tokens", 40}, {"temperature", 0}})),
              before);
  });
  const auto refused = server().post(
      "/v1/completions",
      Document({{"prompt", "Say"}, {"max_tokens", 5}, {"grammar", "root ::= \"x\" ([a-z]?){6000}"}}).dump());
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_EQ(server().metric_becomes("assay_requests_failed_total", 1), 1);  // while it was computed
  other.join();
  EXPECT_TRUE(server().comes_to_rest());
}

// Of a model that brings no tokenizer.
TEST(Completions, TokenIdsNeedNoTokenizer) {
  const fs::path llama = test::source_dir() / "data/models/llama";
  const ServedProgram program(llama, {"--token-ids-only", "--precision", "f64"});
  const test::ProcessResult result =
      test::assay({"run", llama.string(), "--kernels", "cpu-invariant", "--precision", "f64", "--tokens",
                   "1,5,9,2", "-n", "0", "--logprobs", "1", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Document expected = Document::parse(result.out)["sequences"][0]["logprobs"];
  const Document said = program.complete({{"prompt", Document::array({1, 5, 9, 2})},
                                          {"max_tokens", 3},
                                          {"echo", true},
                                          {"logprobs", 1},
                                          {"return_token_ids", true}});
  const Document& choice = said["choices"][0];
  EXPECT_EQ(choice["token_ids"].size(), 3);
  EXPECT_EQ(choice["logprobs"]["tokens"].size(), 7);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(choice["logprobs"]["token_logprobs"][i + 1], expected[i]["logprob"]);
  for (const std::string body : {R"({"prompt": "a"})", R"({"prompt": [1], "stop": "a"})",
                                 R"({"prompt": [1], "grammar": "root ::= [a-z]"})"})
    EXPECT_EQ(program.post("/v1/completions", body).status, 400) << body;
  EXPECT_EQ(program.post("/tokenize", R"({"prompt": "a"})").status, 400);
  EXPECT_EQ(program.post("/detokenize", R"({"tokens": [1]})").status, 400);
}

// A prompt that was read is not computed again, but for who has another salt.
TEST(Completions, SaltsShareNothing) {
  const ServedProgram program(tinylm());
  Document request = {{"prompt", std::string(60, 'a')}, {"max_tokens", 1}, {"cache_salt", "one"}};
  // Full blocks of 16, without the last token. Counts are told after the step whose tokens were.
  const double once = (program.complete(request)["usage"]["prompt_tokens"].get<int>() - 1) / 16 * 16;
  const std::string cached = "assay_prompt_tokens_cached_total";
  program.complete(request);
  EXPECT_EQ(program.metric_becomes(cached, once), once);
  request["cache_salt"] = "two";
  program.complete(request);
  program.complete(request);
  EXPECT_EQ(program.metric_becomes(cached, 2 * once), 2 * once);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(program.metric(cached), 2 * once);
}

TEST(Completions, SixteenClientsGetWhatEachGetsAlone) {
  std::vector<Document> requests;
  for (int i = 0; i < 16; ++i)
    requests.push_back({{"prompt", i % 2 == 0 ? "The river was " + std::to_string(i) : "Once upon a time"},
                        {"max_tokens", 20 + i},
                        {"seed", i},
                        {"n", 1 + i % 3},
                        {"temperature", i % 4 == 0 ? 0.0 : 0.9},
                        {"logprobs", 2},
                        {"cache_salt", std::to_string(i % 5)}});
  std::vector<Document> alone(16), together(16);
  for (std::size_t i = 0; i < 16; ++i) alone[i] = server().complete(requests[i])["choices"];
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < 16; ++i)
    clients.emplace_back([&, i] { together[i] = server().complete(requests[i])["choices"]; });
  for (std::thread& client : clients) client.join();
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(together[i], alone[i]) << i;
  EXPECT_TRUE(server().comes_to_rest());
}

}  // namespace
}  // namespace assay
