// Stands before a server, and changes some of what it is asked or answers.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

#include "tests/refimpl/serve/served_program.h"

namespace assay::test {

inline std::string url_of(int port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

struct ProxiedExchange {
  const Document& asked;
  std::size_t times;                                     // this was asked before
  std::size_t inside;                                    // requests that are under way
  std::function<Document(const Document& request)> ask;  // the server itself
};

class FaultyProxy {
 public:
  using Change = std::function<void(Document& answer, std::size_t times, std::size_t inside)>;
  using Exchange = std::function<Document(const ProxiedExchange&)>;

  FaultyProxy(int port, const Change& change)
      : FaultyProxy(port, Exchange([change](const ProxiedExchange& exchange) {
                      Document answer = exchange.ask(exchange.asked);
                      if (answer.contains("choices")) change(answer, exchange.times, exchange.inside);
                      return answer;
                    })) {}
  FaultyProxy(int port, Exchange exchange) : exchange_(std::move(exchange)) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(32); };
    server_.Post("/v1/completions",
                 [this, port](const httplib::Request& request, httplib::Response& response) {
                   const std::size_t inside = ++inside_;
                   std::this_thread::sleep_for(std::chrono::milliseconds(20));
                   int status = 200;
                   const auto ask = [&](const Document& body) {
                     httplib::Client client("127.0.0.1", port);
                     client.set_read_timeout(120);
                     const auto answer = client.Post("/v1/completions", body.dump(), "application/json");
                     status = answer->status;
                     return Document::parse(answer->body);
                   };
                   std::size_t times = 0;
                   {
                     const std::lock_guard lock(mutex_);
                     times = asked_[request.body]++;
                   }
                   const Document said = exchange_({Document::parse(request.body), times, inside, ask});
                   response.status = status;
                   response.set_content(said.dump(), "application/json");
                   --inside_;
                 });
    server_.Get("/v1/models", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(R"({"data":[]})", "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~FaultyProxy() {
    server_.stop();
    thread_.join();
  }
  std::string url() const { return url_of(port_); }

 private:
  Exchange exchange_;
  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
  std::atomic<std::size_t> inside_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::size_t> asked_;
};

}  // namespace assay::test
