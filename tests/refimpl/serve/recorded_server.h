// Answers what a real engine was once asked as that engine did.
#pragma once

#include "tests/refimpl/serve/faulty_proxy.h"

namespace assay::test {

class RecordedServer {
 public:
  // `recording`: what data/record_engines.py wrote.
  explicit RecordedServer(const Document& recording) : exchanges_(recording["exchanges"]) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(8); };
    server_.Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request.path, Document::parse(request.body), response);
    });
    server_.Get("/v1/models", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(R"({"data":[{"id":"m"}]})", "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  RecordedServer(const RecordedServer&) = delete;
  RecordedServer& operator=(const RecordedServer&) = delete;
  ~RecordedServer() {
    server_.stop();
    thread_.join();
  }
  std::string url() const { return url_of(port_); }
  // A request that the engine was not asked, if there was one.
  std::string unknown() const {
    const std::lock_guard lock(mutex_);
    return unknown_;
  }

 private:
  // A key more is no other request: the recording stays of use where the asker learns new words. Salts are not recorded.
  static bool same(const Document& recorded, const Document& asked) {
    for (const auto& [key, value] : recorded.items())
      if (!asked.contains(key) || asked[key] != value) return false;
    for (const char* way : {"echo", "prompt_logprobs", "logprobs"})
      if (asked.contains(way) != recorded.contains(way)) return false;
    return true;
  }

  void answer(const std::string& route, const Document& asked, httplib::Response& response) {
    for (const Document& exchange : exchanges_) {
      if (exchange["name"] != "" || exchange["route"] != route || !same(exchange["asked"], asked)) continue;
      response.status = exchange["status"];
      response.set_content(exchange["answer"].dump(), "application/json");
      return;
    }
    const std::lock_guard lock(mutex_);
    unknown_ = route + " " + asked.dump();
    response.status = 404;
  }

  Document exchanges_;
  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::string unknown_;
};

}  // namespace assay::test
