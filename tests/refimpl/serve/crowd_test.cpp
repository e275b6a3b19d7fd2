// Many clients at once, and many requests one after another: none is left without its answer, and memory does not grow with them.
#include <atomic>
#include <fstream>

#include "core/system/sanitizer.h"
#include "tests/refimpl/serve/served_program.h"

namespace assay::test {
namespace {

int wanted(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr ? std::stoi(value) : otherwise;
}

Document request_of(int client, int round) {
  Document prompt = Document::array();
  for (int i = 0; i <= client % 24; ++i) prompt.push_back((client * 31 + round * 7 + i) % 440 + 3);
  return {{"prompt", prompt}, {"max_tokens", 1 + client % 7}, {"seed", client}, {"stream", client % 3 == 0}};
}

// 64 clients, each of which asks for the next text as soon as it has one (ASSAY_ROUNDS of them, 4 where it is not set): the texts are those that
// each gets alone.
TEST(Crowds, OfSixtyFourAllAreAnswered) {
  constexpr int kClients = 64;
  const int rounds = wanted("ASSAY_ROUNDS", 4);
  const ServedProgram server(source_dir() / "data/tinylm");
  std::vector<std::string> alone(kClients);
  for (int c = 0; c < kClients; ++c) {
    Document request = request_of(c, 0);
    request["stream"] = false;
    alone[static_cast<std::size_t>(c)] = server.complete(request)["choices"][0]["text"];
  }
  std::atomic<int> answers = 0, wrong = 0;
  const auto ask = [&](int c, int round) {
    const Document request = request_of(c, round);
    const ServedProgram::Answer answer = server.post("/v1/completions", request.dump());
    if (answer.status != 200) return;
    std::string text;
    if (request["stream"].get<bool>()) {
      for (const Document& event : events_of(answer.body))
        if (!event["choices"].empty()) text += event["choices"][0]["text"].get<std::string>();
    } else {
      text = answer.json()["choices"][0]["text"];
    }
    ++answers;
    if (round == 0 && text != alone[static_cast<std::size_t>(c)]) ++wrong;
  };
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c)
    clients.emplace_back([&, c] {
      for (int round = 0; round < rounds; ++round) ask(c, round);
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answers, kClients * rounds);
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(server.comes_to_rest());
}

std::size_t resident_bytes(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6)) * 1024;
  return 0;
}

// Of a pool that is soon full. In the second half of many requests, right ones and wrong ones, memory may grow by a kilobyte for each of
// them; a block, a text or a parsed body left behind is more. (ASSAY_REQUESTS=40000: 300 kB in all.)
TEST(Crowds, MemoryStaysWithinItsPool) {
  if (kSanitized) GTEST_SKIP() << "sanitizers set aside more memory than any bound";
  const ServedProgram server(source_dir() / "data/tinylm", {"--cache-bytes", "1MiB"});
  const auto client = server.client();
  client->set_keep_alive(true);
  client->set_tcp_nodelay(true);
  const int requests = wanted("ASSAY_REQUESTS", 2000);
  const auto ask = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      Document request = request_of(i % 24, i);
      request["max_tokens"] = 1;
      std::string body = request.dump();
      if (i % 4 != 0)
        body.erase(static_cast<std::size_t>(i) % body.size(), 1 + static_cast<std::size_t>(i % 3));
      const auto answer = client->Post("/v1/completions", body, "application/json");
      ASSERT_TRUE(answer) << body;
    }
  };
  ask(0, requests / 2);
  const std::size_t warm = resident_bytes(server.process());
  ask(requests / 2, requests);
  const std::size_t after = resident_bytes(server.process());
  RecordProperty("grown", std::to_string(after - warm));
  EXPECT_GT(warm, 0U);
  EXPECT_LE(after, warm + 512 * static_cast<std::size_t>(requests))
      << "resident: " << warm << " and " << after;
  EXPECT_TRUE(server.comes_to_rest());
}

}  // namespace
}  // namespace assay::test
