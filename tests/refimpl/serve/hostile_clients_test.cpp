// Clients that go away, ask nonsense, or have no business here: the server answers the next one as if nothing were.
#include <random>

#include "tests/refimpl/serve/served_program.h"

namespace assay {
namespace {

using test::Document;
using test::RawClient;
using test::ServedProgram;

fs::path tinylm() {
  return test::source_dir() / "data/tinylm";
}

const Document kShort = {{"prompt", "The river"}, {"max_tokens", 12}, {"temperature", 0}};
// Some seconds of work.
std::string long_request(bool stream) {
  return Document({{"prompt", "The river"},
                   {"max_tokens", 240},
                   {"n", 16},
                   {"stream", stream},
                   {"ignore_eos", true}})
      .dump();
}

std::string said_by(const ServedProgram& server) {
  return server.complete(kShort)["choices"][0]["text"];
}

TEST(HostileClients, WhoeverLeavesLeavesNothingBehind) {
  // So slowly that nothing is over before its client leaves.
  const ServedProgram server(tinylm(), {"--kernels", "reference"});
  const std::string before = said_by(server);
  for (const bool stream : {true, false}) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 6; ++i) {
      clients.push_back(std::make_unique<RawClient>(server.port()));
      clients.back()->post("/v1/completions", long_request(stream));
    }
    for (const auto& client : clients) {
      const bool began = !stream || !client->read_some().empty();
      EXPECT_TRUE(began);
    }
    for (int i = 0; i < 500 && server.metric("assay_cache_blocks_held") <= 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_GT(server.metric("assay_cache_blocks_held"), 0);
    for (std::size_t i = 0; i < clients.size(); ++i)
      i % 2 == 0 ? clients[i]->leave() : clients[i]->close_half();
    const double gone = stream ? 6 : 12;
    EXPECT_EQ(server.metric_becomes("assay_clients_gone_total", gone), gone);
    EXPECT_EQ(server.metric_becomes("assay_requests_cancelled_total", gone), gone)
        << "failed: " << server.metric("assay_requests_failed_total")
        << ", clients gone: " << server.metric("assay_clients_gone_total");
    EXPECT_TRUE(server.comes_to_rest()) << stream;
  }
  RawClient half(server.port());  // of a request
  half.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{\"prompt\"");
  half.leave();
  EXPECT_EQ(said_by(server), before);
}

// It reads nothing: what was made for it waits, no longer than it is allowed to, and others do not wait for it.
TEST(HostileClients, SlowReadersHoldNobodyUp) {
  const ServedProgram server(tinylm());
  const std::string before = said_by(server);
  RawClient slow(server.port());
  slow.post("/v1/completions", long_request(true));
  EXPECT_EQ(said_by(server), before);
  slow.leave();
  EXPECT_TRUE(server.comes_to_rest());
}

struct BadRequest {
  std::string body, field;
};

TEST(HostileClients, WhatIsWrongIsNamed) {
  const ServedProgram server(tinylm());
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  const std::vector<BadRequest> bad = {
      {"", ""},
      {"[]", ""},
      {"{", ""},
      {R"({"prompt": "a", "prompt": "b"})", ""},
      {"{\"prompt\": " + deep + "}", ""},
      {"{\"prompt\": \"\xff\"}", ""},
      {R"({"max_tokens": 3})", "prompt"},
      {R"({"prompt": 3})", "prompt"},
      {R"({"prompt": []})", "prompt"},
      {R"({"prompt": [1, "a"]})", "prompt"},
      {R"({"prompt": [[1], 2]})", "prompt"},
      {R"({"prompt": [999999]})", "prompt"},
      {R"({"prompt": [1e400]})", ""},
      {R"({"prompt": [-1]})", "prompt"},
      {R"({"prompt": [[]]})", "prompt"},
      {R"({"prompt": "a", "max_tokens": -1})", "max_tokens"},
      {R"({"prompt": "a", "max_tokens": 1e30})", "max_tokens"},
      {R"({"prompt": "a", "max_tokens": 99999999999999999999999999})", "max_tokens"},
      {R"({"prompt": "a", "max_tokens": "4"})", "max_tokens"},
      {R"({"prompt": "a", "temperature": -1})", "temperature"},
      {R"({"prompt": "a", "temperature": "hot"})", "temperature"},
      {R"({"prompt": "a", "top_p": 0})", "top_p"},
      {R"({"prompt": "a", "n": 0})", "n"},
      {R"({"prompt": "a", "n": 1000000})", "n"},
      {R"({"prompt": "a", "logprobs": 1000})", "logprobs"},
      {R"({"prompt": "a", "logit_bias": {"x": 1}})", "logit_bias"},
      {R"({"prompt": "a", "logit_bias": {"999999": 1}})", "logit_bias"},
      {R"({"prompt": "a", "logit_bias": {"1": 1e9}})", "logit_bias"},
      {R"({"prompt": "a", "stop": ""})", "stop"},
      {R"({"prompt": "a", "stop": [1]})", "stop"},
      {R"({"prompt": "a", "stream": "yes"})", "stream"},
      {R"({"prompt": "a", "stream_options": {"include_usage": true}})", "stream_options"},
      {R"({"prompt": "a", "seed": -5})", "seed"},
      {R"({"prompt": "a", "suffix": "b"})", "suffix"},
      {R"({"prompt": "a", "best_of": 4})", "best_of"},
      {R"({"prompt": "a", "guided_regex": "b"})", "guided_regex"},
      {R"({"prompt": "a", "grammar": "root ::= ("})", "grammar"},
      {R"({"prompt": "a", "response_format": {"type": "xml"}})", "response_format.type"},
      {R"({"prompt": "a", "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}})",
       "response_format.json_schema.schema"},
      {R"({"prompt": ")" + std::string(3000, 'a') + R"("})", "prompt"}};
  for (const BadRequest& each : bad) {
    const auto answer = server.post("/v1/completions", each.body);
    EXPECT_EQ(answer.status, 400) << each.body.substr(0, 100) << answer.body;
    const Document error = answer.json()["error"];
    EXPECT_FALSE(error["message"].get<std::string>().empty());
    EXPECT_EQ(error["type"], "invalid_request_error");
    const Document field = each.field.empty() ? Document(nullptr) : Document(each.field);
    EXPECT_EQ(error["param"], field) << error;
  }
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt": "a", "model": "gpt"})").status, 404);
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt": "a"})", "text/plain").status, 415);
  EXPECT_EQ(server.post("/v1/nothing", "{}").status, 404);
  EXPECT_EQ(server.get("/v1/nothing").status, 404);
  const auto allowed = [&](const httplib::Result& answer) {
    return answer && answer->status == 405 ? answer->get_header_value("Allow") : "none";
  };
  EXPECT_EQ(allowed(server.client()->Get("/v1/completions")), "POST");
  EXPECT_EQ(allowed(server.client()->Delete("/detokenize")), "POST");
  EXPECT_EQ(allowed(server.client()->Post("/v1/models", "{}", "application/json")), "GET, HEAD");
  EXPECT_EQ(allowed(server.client()->Post("/v1/models/tinylm", "{}", "application/json")), "GET, HEAD");
  EXPECT_EQ(allowed(server.client()->Put("/health", "{}", "application/json")), "GET, HEAD");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens": [448]})").json()["error"]["param"], "tokens");
  EXPECT_EQ(server.post("/tokenize", R"({"prompt": "a", "x": 1})").json()["error"]["param"], "x");
}

// Bodies without a length, or packed, have no limit of their own.
TEST(HostileClients, OnlyBodiesOfKnownLengthAreRead) {
  const ServedProgram server(tinylm(), {"--body-bytes", "2000"});
  for (const std::string header :
       {"Transfer-Encoding: chunked", "Content-Encoding: gzip\r\nContent-Length: 10", "X: y",
        "Content-Length: 2\r\nContent-Length: 50", "Content-Length: 10\r\nTransfer-Encoding: chunked"}) {
    const RawClient client(server.port());
    client.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
                header + "\r\n\r\n");
    const std::string answer = client.read_some();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 411") || answer.starts_with("HTTP/1.1 415")) << answer;
  }
  const std::vector<std::pair<std::string, std::string>> lengths = {
      {"2001", "413"}, {"99999999999999999999999", "413"}, {"-5", "400"}, {"+52", "400"}, {"12x", "400"}};
  for (const auto& [length, status] : lengths) {  // none of it is waited for
    const RawClient client(server.port());
    client.send(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        "application/json\r\nContent-Length: " +
        length + "\r\n\r\n");
    EXPECT_TRUE(client.read_some().starts_with("HTTP/1.1 " + status)) << length;
  }
  const std::string large = Document({{"prompt", std::string(2500, 'a')}}).dump();
  const auto answer = server.post("/v1/completions", large);
  EXPECT_EQ(answer.status, 413);
  EXPECT_TRUE(answer.json()["error"].is_object()) << answer.body;
  EXPECT_EQ(server.complete(kShort)["choices"].size(), 1);
}

// Some thousand requests that differ from good ones in a few bytes (ASSAY_REQUESTS of them that are wrong, 1000 where it is not set): each is
// answered, and the server stays what it was.
TEST(HostileClients, MutatedBodiesChangeNothing) {
  const ServedProgram server(tinylm());
  const std::string before = said_by(server);
  const std::vector<std::string> good = {
      R"({"prompt": [1, 2, 3], "max_tokens": 2, "logprobs": 2, "echo": true, "n": 2, "seed": 5})",
      R"({"prompt": ["a", "b"], "max_tokens": 3, "stop": ["x", "yy"], "logit_bias": {"44": -3.5}, "stream": true})",
      R"({"prompt": "a", "max_tokens": 2, "response_format": {"type": "json_object"}, "cache_salt": "s"})",
      R"({"prompt": "a", "max_tokens": 2, "grammar": "root ::= [a-z]+ | \"b\"", "temperature": 0.5, "top_p": 0.9})"};
  static constexpr std::string_view kBytes = "{}[]\",:0123456789eE+-.\\ \t\n\xff\x80\x00tfn";
  std::mt19937 random(1);
  const auto client = server.client();
  client->set_keep_alive(true);
  client->set_tcp_nodelay(true);
  std::map<int, int> statuses;
  const char* wanted = std::getenv("ASSAY_REQUESTS");
  const int malformed = wanted != nullptr ? std::stoi(wanted) : 1000;
  while (statuses[400] < malformed) {
    std::string body = good[random() % good.size()];
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % body.size();
      switch (random() % 4) {
        case 0: body[at] = kBytes[random() % kBytes.size()]; break;
        case 1: body.insert(at, 1, kBytes[random() % kBytes.size()]); break;
        case 2: body.erase(at, 1 + random() % 3); break;
        default: body.insert(at, body.substr(random() % body.size(), random() % 30)); break;
      }
      if (body.empty()) body = "{";
    }
    const auto answer = client->Post("/v1/completions", body, "application/json");
    ASSERT_TRUE(answer) << body;
    ++statuses[answer->status];
    EXPECT_TRUE(answer->status == 200 || answer->status == 400) << answer->status << body << answer->body;
  }
  EXPECT_GT(statuses[200], malformed / 60);
  EXPECT_EQ(said_by(server), before);
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(HostileClients, KeysAreAskedFor) {
  const test::TempDir dir;
  test::write_file(dir / "keys", "first-of-the-keys\nsecond-of-the-keys\n");
  const ServedProgram server(tinylm(), {"--api-key-file", (dir / "keys").string()});
  const auto status = [&](const std::string& authorization) {
    httplib::Headers headers;
    if (!authorization.empty()) headers.emplace("Authorization", authorization);
    const auto answer = server.client()->Post("/v1/completions", headers, kShort.dump(), "application/json");
    return answer ? answer->status : 0;
  };
  EXPECT_EQ(status(""), 401);
  EXPECT_EQ(status("Bearer first-of-the-key"), 401);
  EXPECT_EQ(status("Bearer first-of-the-keys2"), 401);
  EXPECT_EQ(status("Basic first-of-the-keys"), 401);
  EXPECT_EQ(status("Bearer first-of-the-keys"), 200);
  EXPECT_EQ(status("Bearer second-of-the-keys"), 200);
  EXPECT_EQ(server.get("/metrics").status, 401);
  EXPECT_EQ(server.get("/v1/models").status, 401);
  EXPECT_EQ(server.get("/health").status, 200);
  test::write_file(dir / "short", "abc\n");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--host", "0.0.0.0"},
                                                {"--api-key-file", (dir / "short").string()},
                                                {"--api-key-file", (dir / "none").string()},
                                                {"--port", "65536"},
                                                {"--queue", "0"}}) {
    std::vector<std::string> arguments = {"serve", tinylm().string(), "--port", "0"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const test::ProcessResult result = test::assay(arguments);
    EXPECT_EQ(result.exit_code, 2) << wrong[0];
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

// A page from elsewhere whose name was made to point to this machine.
TEST(HostileClients, OtherNamesOfThisMachineAreRefused) {
  const ServedProgram server(tinylm());
  const auto status = [&](const httplib::Headers& headers) {
    const auto answer = server.client()->Get("/v1/models", headers);
    return answer ? answer->status : 0;
  };
  for (const char* host :
       {"attacker.example:80", "127.attacker.example", "localhost.attacker.example", "[::1].x"})
    EXPECT_EQ(status({{"Host", host}}), 403) << host;
  for (const char* host : {"localhost", "localhost:80", "127.0.0.1:80", "127.1.2.3", "[::1]", "[::1]:80"})
    EXPECT_EQ(status({{"Host", host}}), 200) << host;
  EXPECT_EQ(status({{"Host", "localhost"}, {"Host", "attacker.example"}}), 400);
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// One segment, or many: the next request stands where the one before ends.
TEST(HostileClients, RequestsThatComeTogetherAreAnsweredInTurn) {
  const ServedProgram server(tinylm());
  const auto completion = [](const std::string& more, const std::string& body) {
    return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + more +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  const std::string model = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string large = Document({{"prompt", std::string(6000, ' ')}, {"max_tokens", 1}}).dump();
  const std::string requests = model + completion("", kShort.dump()) + completion("", large) + model +
                               completion("Connection: close\r\n", R"({"prompt": "a", "max_tokens": 1})");
  for (const std::size_t part : {requests.size(), std::size_t{4096}, std::size_t{97}}) {
    const RawClient client(server.port());
    for (std::size_t at = 0; at < requests.size(); at += part) client.send(requests.substr(at, part));
    const std::string answers = client.read_all();
    EXPECT_EQ(count(answers, "HTTP/1.1 200"), 4) << answers;
    EXPECT_EQ(count(answers, "HTTP/1.1 400"), 1) << answers;  // `large` does not fit the context
    const std::size_t first = answers.find("\"list\""), second = answers.find("text_completion");
    EXPECT_LT(first, second);
    EXPECT_LT(second, answers.find("\"list\"", first + 1));
  }
  // A body that nobody reads is no request.
  const std::string hidden = completion("", R"({"prompt": "a", "max_tokens": 1})");
  for (const std::string& before :
       {"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(hidden.size()) +
            "\r\n\r\n",
        std::string("PUT /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300\r\n\r\n"),
        std::string("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: -3\r\n\r\n"),
        std::string("nonsense\r\n\r\n")}) {
    const RawClient client(server.port());
    client.send(before + hidden);
    const std::string answers = client.read_all();
    EXPECT_EQ(count(answers, "HTTP/1.1 "), 1) << before << answers;
    EXPECT_NE(answers.find("Connection: close"), std::string::npos) << before << answers;
  }
}

TEST(HostileClients, TooManyAndTooLongAreToldSo) {
  const ServedProgram server(
      tinylm(), {"--queue", "2", "--timeout", "0.4", "--precision", "f64", "--kernels", "reference"});
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt": ["a", "b", "c"], "max_tokens": 1})").status, 429);
  const auto too_long = [](bool stream) {
    Document request = Document::parse(long_request(stream));
    request["prompt"] = {"The river", "The hill"};
    return request.dump();
  };
  const auto late = server.post("/v1/completions", too_long(false));
  EXPECT_EQ(late.status, 504) << late.body;
  EXPECT_TRUE(server.comes_to_rest());
  const auto streamed = server.post("/v1/completions", too_long(true));
  EXPECT_EQ(streamed.status, 200);
  EXPECT_NE(streamed.body.find("\"error\""), std::string::npos);
  EXPECT_EQ(streamed.body.find("[DONE]"), std::string::npos);
  EXPECT_TRUE(server.comes_to_rest());
  const auto answer = server.post("/v1/completions", R"({"prompt": "a", "max_tokens": 1})");
  EXPECT_EQ(answer.status, 200) << answer.body;
}

TEST(Signals, WhatIsUnderWayIsFinished) {
  ServedProgram server(tinylm(), {"--grace", "60"});
  const std::string body =
      Document(
          {{"prompt", "The river"}, {"max_tokens", 200}, {"n", 8}, {"stream", true}, {"ignore_eos", true}})
          .dump();
  const RawClient client(server.port());
  client.post("/v1/completions", body);
  EXPECT_FALSE(client.read_some().empty());
  server.signal(SIGTERM);
  const std::string rest = client.read_all();
  EXPECT_NE(rest.find("[DONE]"), std::string::npos);
  EXPECT_EQ(server.wait(20), 130);
}

TEST(Signals, AndEndedWhereItTakesTooLong) {
  for (const int number : {SIGTERM, SIGINT}) {
    ServedProgram server(tinylm(), {"--grace", "0", "--precision", "f64", "--kernels", "reference"});
    RawClient streamed(server.port()), whole(server.port());
    streamed.post("/v1/completions", long_request(true));
    whole.post("/v1/completions", long_request(false));
    EXPECT_FALSE(streamed.read_some().empty());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const auto asked = std::chrono::steady_clock::now();
    server.signal(number);
    const std::string said = whole.read_all();
    EXPECT_TRUE(said.starts_with("HTTP/1.1 503")) << said;
    const std::string rest = streamed.read_all();
    EXPECT_NE(rest.find("\"error\""), std::string::npos);
    EXPECT_EQ(server.wait(20), 130);
    EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(15));
  }
}

TEST(Signals, TheSecondEndsAtOnce) {
  ServedProgram server(tinylm(), {"--grace", "600", "--precision", "f64", "--kernels", "reference"});
  RawClient client(server.port());
  client.post("/v1/completions", long_request(true));
  EXPECT_FALSE(client.read_some().empty());
  server.signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(server.wait(0.1), -1);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(15), 130);
}

}  // namespace
}  // namespace assay
