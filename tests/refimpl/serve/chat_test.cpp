// /v1/chat/completions, /tokenize and /detokenize of the program as it runs.
#include "tests/refimpl/serve/served_program.h"

namespace assay {
namespace {

using test::Document;

struct ChatServer {
  test::ChattyModel model;
  test::ServedProgram program{model.path()};
};
const test::ServedProgram& server() {
  static const ChatServer served;
  return served.program;
}

Document said(const std::string& text) {
  return Document::array({{{"role", "user"}, {"content", text}}});
}
std::string content_of(const Document& answer) {
  return answer["choices"][0]["message"]["content"];
}
// What the template makes of it, by the text of its tokens.
std::string prompt_of(Document request) {
  const Document ids = server().post("/tokenize", request.dump()).json()["tokens"];
  return server().post("/detokenize", Document({{"tokens", ids}}).dump()).json()["prompt"];
}

TEST(Chat, TheTextIsThatOfRun) {
  const test::ChattyModel model;
  const test::ProcessResult run =
      test::assay({"run", model.path().string(), "--kernels", "cpu-invariant", "--chat", "-p", "The river",
                   "-n", "20", "--temperature", "0.7", "--seed", "5", "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Document request = {
      {"messages", said("The river")}, {"max_completion_tokens", 20}, {"temperature", 0.7}, {"seed", 5}};
  const Document answer = server().chat(request);
  EXPECT_EQ(content_of(answer), Document::parse(run.out)["text"]);
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["choices"][0]["message"]["role"], "assistant");
  // And without a limit: as long as the model's context, of which the last token is not read any more.
  Document unbounded = request;
  unbounded.erase("max_completion_tokens");
  unbounded["ignore_eos"] = true;
  const Document usage = server().chat(unbounded)["usage"];
  EXPECT_EQ(usage["total_tokens"], 257);
}

TEST(Chat, StreamsSayTheSame) {
  Document request = {{"messages", said("The river")},
                      {"max_tokens", 20},
                      {"seed", 5},
                      {"logprobs", true},
                      {"top_logprobs", 3},
                      {"n", 2}};
  const Document whole = server().chat(request);
  request["stream"] = true;
  const auto answer = server().post("/v1/chat/completions", request.dump());
  std::vector<std::string> texts(2);
  std::vector<Document> scored(2, Document::array());
  std::vector<int> roles(2), ends(2);
  for (const Document& event : test::events_of(answer.body)) {
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    for (const Document& choice : event["choices"]) {
      const std::size_t index = choice["index"];
      roles[index] += choice["delta"].contains("role") ? 1 : 0;
      if (choice["delta"].contains("content")) texts[index] += choice["delta"]["content"].get<std::string>();
      if (!choice["logprobs"].is_null())
        for (const Document& token : choice["logprobs"]["content"]) scored[index].push_back(token);
      ends[index] += choice["finish_reason"].is_null() ? 0 : 1;
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(texts[i], whole["choices"][i]["message"]["content"]);
    EXPECT_EQ(scored[i], whole["choices"][i]["logprobs"]["content"]);
    EXPECT_EQ(roles[i], 1);
    EXPECT_EQ(ends[i], 1);
  }
  const Document first = whole["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(first["top_logprobs"].size(), 3);
  EXPECT_GE(first["top_logprobs"][0]["logprob"], first["top_logprobs"][1]["logprob"]);
  std::string bytes;
  for (const int byte : first["bytes"]) bytes += static_cast<char>(byte);
  EXPECT_EQ(bytes, first["token"]);
}

TEST(Chat, TheTemplateSeesWhatWasGiven) {
  const std::string begin = "user: hi\n";
  EXPECT_EQ(prompt_of({{"messages", said("hi")}}), begin + "assistant:");
  EXPECT_EQ(prompt_of({{"messages", said("hi")}, {"add_generation_prompt", false}}), begin);
  const Document parts =
      Document::array({{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}});
  EXPECT_EQ(prompt_of({{"messages", Document::array({{{"role", "user"}, {"content", parts}}})}}),
            "user: a\nb\nassistant:");
  const Document tool = {{"type", "function"}, {"function", {{"name", "z"}, {"a", 1}}}};
  EXPECT_EQ(prompt_of({{"messages", said("hi")}, {"tools", Document::array({tool})}}),
            "tools: [{\"type\": \"function\", \"function\": {\"name\": \"z\", \"a\": 1}}]\n" + begin +
                "assistant:");
  EXPECT_EQ(
      prompt_of({{"messages", said("hi")}, {"tools", Document::array({tool})}, {"tool_choice", "none"}}),
      begin + "assistant:");
  // Arguments are a string of JSON in the API, and what it says in templates.
  const Document call = {{"id", "1"},
                         {"type", "function"},
                         {"function", {{"name", "w"}, {"arguments", "{\"city\": \"Rome\"}"}}}};
  Document turns = said("hi");
  turns.push_back({{"role", "assistant"}, {"content", "so"}, {"tool_calls", Document::array({call})}});
  EXPECT_EQ(prompt_of({{"messages", turns}}), begin + "assistant: so Rome\nassistant:");
}

TEST(Chat, WhatIsWrongIsNamed) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {R"({})", "messages"},
      {R"({"messages": []})", "messages"},
      {R"({"messages": "hi"})", "messages"},
      {R"({"messages": ["hi"]})", "messages[0]"},
      {R"({"messages": [{"content": "hi"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "user", "content": 3}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": "hi"}], "tools": {"a": 1}})", "tools"},
      {R"({"messages": [{"role": "user", "content": "hi"}], "tool_choice": "required"})", "tool_choice"},
      {R"({"messages": [{"role": "user", "content": "hi"}], "tool_choice": {"type": "function"}})",
       "tool_choice"},
      {R"({"messages": [{"role": "user", "content": "hi"}], "top_logprobs": 2})", "top_logprobs"},
      {R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 0})", "max_tokens"},
      {R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1, "max_completion_tokens": 2})",
       "max_tokens"},
      {R"({"messages": [{"role": "user", "content": "hi"}], "functions": []})", "functions"},
      {R"({"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "low"})", "reasoning_effort"},
      {R"({"messages": [{"role": "user", "content": "hi"}], "chat_template_kwargs": {"messages": []}})",
       "chat_template_kwargs"},
      {R"({"messages": [{"role": "user", "content": "hi"}], "modalities": ["audio"]})", "modalities"}};
  for (const auto& [body, field] : bad) {
    const auto answer = server().post("/v1/chat/completions", body);
    EXPECT_EQ(answer.status, 400) << body << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], field) << body << answer.body;
  }
}

TEST(Tokenize, ThereAndBack) {
  const Document answer =
      server().post("/tokenize", R"({"prompt": "The é", "return_token_strs": true})").json();
  EXPECT_EQ(answer["count"], answer["tokens"].size());
  EXPECT_EQ(answer["max_model_len"], 256);
  const test::ProcessResult other =
      test::assay({"tokenize", (test::source_dir() / "data/tinylm").string(), "The é", "--json", "-"});
  EXPECT_EQ(answer["tokens"], Document::parse(other.out)["ids"]);
  EXPECT_EQ(answer["token_strs"][0], "<｜begin▁of▁sentence｜>");
  EXPECT_EQ(answer["token_strs"].back(), "bytes:\\xa9");
  const Document plain =
      server().post("/tokenize", R"({"prompt": "The é", "add_special_tokens": false})").json();
  EXPECT_EQ(plain["count"], answer["count"].get<int>() - 1);
  EXPECT_EQ(server().post("/detokenize", Document({{"tokens", plain["tokens"]}}).dump()).json()["prompt"],
            "The é");
}

TEST(Models, AreListed) {
  const Document list = server().get("/v1/models").json();
  EXPECT_EQ(list["data"][0]["id"], "tinylm");
  EXPECT_EQ(list["data"][0]["max_model_len"], 256);
  EXPECT_EQ(server().get("/v1/models/tinylm").json(), list["data"][0]);
  const auto other = server().get("/v1/models/gpt");
  EXPECT_EQ(other.status, 404);
  EXPECT_EQ(other.json()["error"]["code"], "model_not_found");
}

}  // namespace
}  // namespace assay
