// The program against a server that does what a test says, and against its own.
#include <atomic>
#include <functional>

#include "tests/refimpl/serve/served_program.h"

namespace assay::test {
namespace {

// Answers /v1/completions as `answer` says; how many are asked at once is kept.
class FakeServer {
 public:
  using Answer = std::function<void(const httplib::Request&, httplib::Response&, std::size_t number)>;

  explicit FakeServer(Answer answer) : answer_(std::move(answer)) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(64); };
    server_.Get("/v1/models", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(R"({"data":[{"id":"fake"}]})", "application/json");
    });
    server_.Post("/v1/completions", [this](const httplib::Request& request, httplib::Response& response) {
      const Document asked = Document::parse(request.body);
      if (!asked.value("stream", false)) return plain(asked, response);
      const std::size_t now = ++inside_;
      for (std::size_t seen = most_; now > seen && !most_.compare_exchange_weak(seen, now);) continue;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      answer_(request, response, number_++);
      --inside_;
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~FakeServer() {
    server_.stop();
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::size_t most() const { return most_; }

 private:
  // Token ids are taken as they are.
  static void plain(const Document& asked, httplib::Response& response) {
    const bool ids = asked["prompt"].is_array();
    const Document usage = {{"prompt_tokens", ids ? asked["prompt"].size() : 1}, {"completion_tokens", 1}};
    response.set_content(
        Document({{"choices", {{{"text", "x"}, {"finish_reason", "length"}}}}, {"usage", usage}}).dump(),
        "application/json");
  }

  Answer answer_;
  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
  std::atomic<std::size_t> inside_ = 0, most_ = 0, number_ = 0;
};

std::string event(const Document& document) {
  return "data: " + document.dump() + "\n\n";
}
std::string chunk(const std::string& text, const Document& ids, const char* reason = nullptr) {
  Document choice = {{"text", text}, {"token_ids", ids}};
  if (reason != nullptr) choice["finish_reason"] = reason;
  return event({{"choices", {choice}}});
}
std::string usage(const httplib::Request& request, std::size_t made) {
  const std::size_t prompt = Document::parse(request.body)["prompt"].size();
  return event(
      {{"choices", Document::array()}, {"usage", {{"prompt_tokens", prompt}, {"completion_tokens", made}}}});
}
// Three tokens in two chunks.
void say_three(const httplib::Request& request, httplib::Response& response, std::size_t) {
  response.set_content(
      chunk("a b", {1, 2}) + chunk(" c", {3}, "length") + usage(request, 3) + "data: [DONE]\n\n",
      "text/event-stream");
}

struct BenchRun {
  ProcessResult process;
  Document report;
};
BenchRun bench(const std::string& url, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"bench",           url,     "--prompt-as",     "ids",
                                        "--token-ids",     "10-99", "--output-tokens", "3",
                                        "--prompt-tokens", "8",     "--json",          "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  BenchRun run{assay(arguments), {}};
  if (!run.process.out.empty()) run.report = Document::parse(run.process.out);
  return run;
}

TEST(Bench, CountsTokensOfChunksOfSeveral) {
  const FakeServer server(say_three);
  const BenchRun run = bench(server.url(), {"--requests", "12", "--concurrency", "3"});
  EXPECT_EQ(run.process.exit_code, 0) << run.process.err << run.process.out;
  EXPECT_EQ(run.report["whole"], 12);
  EXPECT_EQ(run.report["output_tokens"], 36);
  EXPECT_EQ(run.report["input_tokens"], 96);
  EXPECT_EQ(run.report["itl_token_ms"]["count"], 24);  // 2 gaps of each
  EXPECT_EQ(run.report["itl_chunk_ms"]["count"], 12);
  EXPECT_LE(server.most(), 3U);
  EXPECT_GE(server.most(), 2U);
}

TEST(Bench, FailuresAreCountedByWhatWentWrong) {
  const FakeServer server(
      [](const httplib::Request& request, httplib::Response& response, std::size_t number) {
        switch (number % 4) {
          case 0: return say_three(request, response, number);
          case 1:
            response.status = 503;
            response.set_content(R"({"error":{"message":"full"}})", "application/json");
            return;
          case 2: return response.set_content(chunk("a", {1}), "text/event-stream");  // cut off
          default:
            return response.set_content("data: {\"error\":{\"message\":\"oom\"}}\n\n", "text/event-stream");
        }
      });
  const BenchRun run = bench(server.url(), {"--requests", "16", "--concurrency", "1"});
  EXPECT_EQ(run.process.exit_code, 1);
  EXPECT_EQ(run.report["whole"], 4);
  EXPECT_EQ(run.report["failed"], 12);
  EXPECT_EQ(run.report["failures"].size(), 3U) << run.report["failures"].dump();
}

TEST(Bench, UsageThatIsNotWhatCameIsMistrusted) {
  const FakeServer server([](const httplib::Request& request, httplib::Response& response, std::size_t) {
    response.set_content(
        chunk("a b", {1, 2}) + chunk(" c", {3}, "length") + usage(request, 4) + "data: [DONE]\n\n",
        "text/event-stream");
  });
  const BenchRun run = bench(server.url(), {"--requests", "4"});
  EXPECT_EQ(run.process.exit_code, 1);
  EXPECT_NE(run.report.dump().find("usage says 4 tokens, the chunks bore 3"), std::string::npos)
      << run.report.dump(1);
}

TEST(Bench, NobodyThereIsOneLine) {
  for (const char* url : {"http://127.0.0.1:9", "127.0.0.1:9"}) {
    const ProcessResult result = assay({"bench", url});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(Bench, OfOurOwnServer) {
  const ServedProgram server(source_dir() / "data/tinylm");
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
  const TempDir dir;
  const fs::path page = dir / "page.html";
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--concurrency", "4"}, {"--rate", "200"}, {"--prompt-as", "text"}, {"--count-by", "logprobs"}}) {
    std::vector<std::string> arguments = {"bench",           url,  "--requests",      "12",
                                          "--prompt-tokens", "20", "--output-tokens", "16",
                                          "--json",          "-",  "--html",          page.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = assay(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
    const Document report = Document::parse(result.out);
    EXPECT_EQ(report["whole"], 12);
    EXPECT_EQ(report["input_tokens"], 240);
    for (const Document& identity : report["identities"]) EXPECT_TRUE(identity["holds"]) << identity.dump();
    EXPECT_NE(read_file(page).find("<svg"), std::string::npos);
    fs::remove(page);
  }
}

}  // namespace
}  // namespace assay::test
