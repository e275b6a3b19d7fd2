// The program as it serves a model, and what a client of it sees.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {

using Document = nlohmann::ordered_json;

// tinylm, which has no chat template of its own, with one.
class ChattyModel {
 public:
  ChattyModel() {
    const fs::path from = source_dir() / "data/tinylm";
    fs::create_directory(path());
    for (const auto& entry : fs::directory_iterator(from))
      if (entry.path().filename() != "tokenizer_config.json")
        fs::create_symlink(entry.path(), path() / entry.path().filename());
    Document config = Document::parse(read_file(from / "tokenizer_config.json"));
    config["chat_template"] =
        "{% if tools %}tools: {{ tools | tojson }}{{ '\n' }}{% endif %}"
        "{% for m in messages %}{{ m.role }}: {{ m.content }}{% if m.tool_calls %} "
        "{{ m.tool_calls[0].function.arguments.city }}{% endif %}{{ '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}";
    write_file(path() / "tokenizer_config.json", config.dump());
  }
  fs::path path() const { return dir_ / "tinylm"; }

 private:
  TempDir dir_;
};

class ServedProgram {
 public:
  explicit ServedProgram(const fs::path& model, std::vector<std::string> options = {}) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    std::vector<std::string> arguments = {assay_binary(), "serve", model.string(), "--port", "0", "-j", "2"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      const int nowhere = ::open("/dev/null", O_WRONLY);
      ::dup2(nowhere, STDERR_FILENO);
      std::vector<char*> pointers;
      for (std::string& argument : arguments) pointers.push_back(argument.data());
      pointers.push_back(nullptr);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    std::string line;
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
    ::close(ends[0]);
    const std::size_t colon = line.rfind(':');
    if (line.starts_with("serving ") && colon != std::string::npos) port_ = std::stoi(line.substr(colon + 1));
    EXPECT_GT(port_, 0) << "the first line is: " << line;
  }
  ServedProgram(const ServedProgram&) = delete;
  ServedProgram& operator=(const ServedProgram&) = delete;
  ~ServedProgram() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }

  int port() const { return port_; }
  pid_t process() const { return process_; }
  // Never of one that is over: kill(-1) would be for every process there is.
  void signal(int number) const {
    if (process_ > 0) ::kill(process_, number);
  }
  // Its exit code; -1: it goes on.
  int wait(double seconds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (int status = 0; std::chrono::steady_clock::now() < until;) {
      if (::waitpid(process_, &status, WNOHANG) == process_) {
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return -1;
  }

  std::unique_ptr<httplib::Client> client() const {
    auto client = std::make_unique<httplib::Client>("127.0.0.1", port_);
    client->set_read_timeout(120);
    return client;
  }
  struct Answer {
    int status = 0;
    std::string body;
    Document json() const { return Document::parse(body, nullptr, false); }
  };
  Answer get(const std::string& route) const {
    const auto result = client()->Get(route);
    return result ? Answer{result->status, result->body} : Answer{};
  }
  Answer post(const std::string& route, const std::string& body,
              const std::string& type = "application/json") const {
    const auto result = client()->Post(route, body, type);
    return result ? Answer{result->status, result->body} : Answer{};
  }
  Document complete(const Document& request) const {
    const Answer answer = post("/v1/completions", request.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
  Document chat(const Document& request) const {
    const Answer answer = post("/v1/chat/completions", request.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }

  double metric(const std::string& name) const {
    const std::string text = get("/metrics").body;
    const std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  // Within some seconds the metric is that; what it is then.
  double metric_becomes(const std::string& name, double value) const {
    for (int i = 0; i < 500 && metric(name) != value; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return metric(name);
  }
  // Within some seconds nothing is computed any more, and nobody holds a block.
  bool comes_to_rest() const {
    for (int i = 0; i < 500; ++i) {
      if (metric("assay_prompts_under_way") == 0 && metric("assay_cache_blocks_held") == 0 &&
          metric("assay_texts_running") == 0 && metric("assay_texts_waiting") == 0)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

 private:
  pid_t process_ = -1;
  int port_ = 0;
};

// What the events of a stream say; each has to be whole JSON, which is UTF-8 or does not parse.
inline std::vector<Document> events_of(const std::string& body) {
  std::vector<Document> events;
  bool done = false;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find("\n\n", at);
    if (end == std::string::npos || body.compare(at, 6, "data: ") != 0) {
      ADD_FAILURE() << "no event: " << body.substr(at, 80);
      return events;
    }
    const std::string data = body.substr(at + 6, end - at - 6);
    at = end + 2;
    EXPECT_FALSE(done) << "something follows [DONE]";
    done = data == "[DONE]";
    if (!done) events.push_back(Document::parse(data));
  }
  EXPECT_TRUE(done) << "no [DONE]";
  return events;
}

// A connection of which the test sees every byte.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { leave(); }

  void send(const std::string& bytes) const { ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void post(const std::string& route, const std::string& body) const {
    send("POST " + route +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  std::string read_some() const {
    char buffer[4096];
    const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : "";
  }
  std::string read_all() const {
    std::string all;
    for (std::string some = read_some(); !some.empty(); some = read_some()) all += some;
    return all;
  }
  void close_half() const { ::shutdown(socket_, SHUT_WR); }
  void leave() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
};

}  // namespace assay::test
